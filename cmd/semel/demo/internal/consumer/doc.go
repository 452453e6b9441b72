// Package consumer is the process of the demo that takes orders from the
// broker and charges them, by an insert into a database: once with Semel, and
// once as it is often written. It keeps a journal, so that others see what it
// was at when it was killed.
package consumer
