// Package redisclients compares clients of Redis, for the choice of the one
// that package redisstore uses: go-redis, rueidis, and the server's own
// redis-benchmark as the bound. It has only a measurement:
//
//	SEMEL_TEST_COMPARE=1 go test ./redisclients -v
package redisclients
