// Package console is a page for operators: what is in doubt, what runs, what has failed,
// which sagas are stuck, and which messages wait in an outbox. An operator who may act
// resolves, reopens and retries there, guarded by the record's fence and with a reason.
//
// [New] makes an [http.Handler] for a place in a site of one's own, behind its log-in:
//
//	page, err := console.New(st, &console.Options{Operator: currentUser})
//	mux.Handle("/admin/semel/", http.StripPrefix("/admin/semel", page))
//
// "semel console" serves the same pages as a program of its own.
//
// Keys and tenants are shown to everybody who can open a page. Answers and results of
// steps are not, unless Options.ShowBodies is set.
package console
