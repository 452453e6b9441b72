// Package redisclients measures the clients of Redis that package redisstore could
// use, go-redis and rueidis, and redis-benchmark as the upper bound. It has only
// tests:
//
//	SEMEL_TEST_COMPARE=1 go test ./redisclients -v
package redisclients
