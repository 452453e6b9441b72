// Package demo shows what Semel is for. Clients in a hurry pay orders at a
// naive payment service that is killed again and again: once straight, and
// once through semel proxy, which is killed as well. Then the charges are
// counted in the service's own journal.
package demo
