// Package table has the SQL statements for the table of records, and converts
// records to rows and back. It does not send anything to the server.
package table
