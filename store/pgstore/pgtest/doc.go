// Package pgtest runs private PostgreSQL servers for tests, from the binaries
// that this machine has. It is for tests only.
//
// A server listens on the loopback interface, keeps its data in a directory of
// its own (on Linux in memory, with fsync=off), and on Linux dies with the test process, however that ends. As root
// it runs as the user postgres, because PostgreSQL refuses root. [Server.Kill]
// and [Server.Start] crash a server and start it again.
//
// If there are no binaries, tests are skipped with a message; if
// SEMEL_TEST_REQUIRE is 1, they fail. These variables choose other servers:
//
//   - SEMEL_TEST_POSTGRES_BIN: the directory of the binaries, for example of another
//     version (see scripts/postgres17)
//   - SEMEL_TEST_POSTGRES_URL: a server that replaces the shared one, for tests
//     that do not kill it
//   - SEMEL_TEST_PGBOUNCER_BIN: the program of PgBouncer (see
//     scripts/pgbouncer124)
package pgtest
