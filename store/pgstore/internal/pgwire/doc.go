// Package pgwire has what pgstore and pgkafka need to talk to PostgreSQL: the
// meaning of error codes, a pipeline for the statements of a transaction, and arrays
// as parameters of batch statements. It knows nothing of records.
package pgwire
