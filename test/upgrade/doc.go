// Package upgrade runs processes of two versions beside each other on one PostgreSQL
// database, as a rolling upgrade does: this tree, and this tree with one more migration
// that only adds.
package upgrade
