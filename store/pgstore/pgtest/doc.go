// Package pgtest runs private PostgreSQL servers for tests, from the binaries
// that the machine has. It is for tests only.
//
// A server listens on the loopback interface, keeps its data in a directory of
// its own, and dies with the test process, however that ends. As root it runs
// as the user postgres, because PostgreSQL refuses root. [Server.Kill] and
// [Server.Start] crash it and bring it back.
//
// Where there are no binaries, tests are skipped, loudly; with
// SEMEL_TEST_REQUIRE=1 they fail. SEMEL_TEST_POSTGRES_BIN names the directory
// of other binaries, such as those of another version (see
// scripts/postgres17); SEMEL_TEST_POSTGRES_URL names a server to use instead,
// for tests that need not kill it. SEMEL_TEST_PGBOUNCER_BIN names the program of
// another PgBouncer than the one installed (see scripts/pgbouncer124).
package pgtest
