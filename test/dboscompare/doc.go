// Package dboscompare compares sagas of Semel with workflows of DBOS Transact for Go, on
// one PostgreSQL server: how fast they are, and what they do when processes die, freeze or
// change. It is a module of its own, because of the dependencies of DBOS.
package dboscompare
