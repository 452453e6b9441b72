// Package minidyn runs tests of store/dynamostore on minidyn, an implementation of
// DynamoDB in Go, as a second opinion beside ministack. It names each test that minidyn
// cannot pass, and fails if another one fails, or if one of these passes.
package minidyn
