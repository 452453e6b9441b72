// Package ledger is the payment service of the demo: a process of its own that
// records charges in a journal, and that the demo kills. It is naive on purpose: a
// request that comes twice charges twice.
//
// Like a good payment provider it has an endpoint to reconcile: asked about a key,
// it answers that the charge happened, that it did not and never will, or that it
// does not know yet.
package ledger
