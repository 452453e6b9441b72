// Package httpclients runs semel proxy between real HTTP clients and real services:
// fetch of Node, curl, the HttpClient of the JDK and a page in Chromium on one side,
// Flask and Express on the other. testdata/fetch.sh fetches Flask, Express and the compiler
// of TypeScript. It also runs the clients of docs/clients.md against a service that answers
// late, 503 or not at all.
//
// A test whose program is missing is skipped; if SEMEL_TEST_REQUIRE is 1, it fails.
package httpclients
