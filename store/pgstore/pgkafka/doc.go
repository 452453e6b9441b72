// Package pgkafka keeps in PostgreSQL what a consumer of Kafka needs beside records:
// a [Watermark], which says how far the consumer has come in a partition and moves in
// the transaction of the effects, and a [CrashMarker], which finds the message that
// kills the process. Package kafkapg uses both. Their tables are in the schema of a
// pgstore.Store, which makes them.
package pgkafka
