// Package httpclients runs semel proxy between real HTTP clients and real services:
// fetch of Node, curl, the HttpClient of the JDK and a page in Chromium on one side,
// Flask and Express on the other. testdata/fetch.sh fetches Flask and Express.
//
// A test whose program is missing is skipped; if SEMEL_TEST_REQUIRE is 1, it fails.
package httpclients
