// Package console has pages for operators. They show the calls in doubt, the sagas that
// are stuck and the messages of an outbox that cannot be sent, and find any record by its
// key. Operators with a name resolve, reopen and retry there: each decision needs a reason,
// and names the fence of the record that it is about.
//
// [New] makes an [http.Handler] for a place in a site of one's own, behind its log-in:
//
//	page, err := console.New(st, &console.Options{Operator: currentUser})
//	mux.Handle("/admin/semel/", http.StripPrefix("/admin/semel", page))
//
// A store does not count calls, so Options.Rates reads the /metrics of processes (package
// console/rates), and a page draws how many calls a minute ran, were replayed and
// conflicted.
//
// "semel console" serves the same pages as a program of its own.
//
// Keys and tenants are shown to everybody who can open a page. Answers and results of
// steps are not, unless Options.ShowBodies is set.
package console
