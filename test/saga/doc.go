// Package saga tests package saga with real processes: workers over SQLite,
// PostgreSQL and DynamoDB are killed at every effect and between, and a ledger that does
// not use Semel judges.
package saga
