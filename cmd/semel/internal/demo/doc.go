// Package demo shows what Semel is for, in two ways. Clients in a hurry pay
// orders at a naive payment service that is killed again and again: once
// straight, and once through semel proxy, which is killed as well; then the
// charges are counted in the service's own journal. Or producers send each
// order up to three times to a broker, and consumers that are killed again and
// again charge them: as it is often written, and with Semel; then the charges
// are counted in the database.
package demo
