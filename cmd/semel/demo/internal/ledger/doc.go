// Package ledger is the payment service of the demo: a process of its own that
// writes down charges, and is killed while it does. It is naive on purpose: a
// request that comes twice charges twice.
//
// What it does offer is a way to find out afterwards, as a good payment
// provider does: asked about a key, it says that the charge happened, or makes
// sure that it never will, or that it does not know yet.
package ledger
