// Package saga tests package saga with real processes: workers over SQLite and
// PostgreSQL are killed at every effect and between, and a ledger that does not use Semel
// judges.
package saga
