// Package sqliteoutbox is the outbox of package outbox in an SQLite file: it writes
// messages in transactions of database/sql, and gives them to an outbox.Publisher. The
// tables are in the file of a sqlitestore.Store, which may be the application's own
// database.
//
//	box, err := sqliteoutbox.New(st)
//	...
//	tx, err := db.BeginTx(ctx, nil) // of the same file, with _txlock=immediate
//	... // the effect
//	err = box.Put(ctx, tx, outbox.Message{Topic: "orders", OrderKey: customer, Body: event})
//	err = tx.Commit()
//
// Put works the same in a handler of sqlitestore's Atomic, with the transaction of the
// handler.
//
// SQLite has one write transaction at a time, so positions are in the order of the
// commits. There are no notifications: a publisher looks for messages every 20 ms. All
// processes must be on one machine.
package sqliteoutbox
