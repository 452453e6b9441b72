// Package powertools compares Semel on DynamoDB with the idempotency utility of
// Powertools for AWS Lambda (Python): the same calls to the same server, which
// answers each request after 5 ms. The package has only a comparison, which runs with:
//
//	SEMEL_TEST_COMPARE=1 go test -count=1 -v -run TestCompare ./powertools
//
// It needs python3 with venv, and PyPI. Each call has a new key and a handler that does nothing. The
// server here accepts each write and keeps nothing, so that the server's own time does
// not count. The comparison prints, for 1, 16 and 64 concurrent calls, the median time
// that a call takes, the requests and the processor time of the client for each call, and
// calls for each second of processor time. It judges the count of requests, and that with
// one caller a call takes less time with Semel.
package powertools
