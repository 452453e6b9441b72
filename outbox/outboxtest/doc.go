// Package outboxtest tests that a store keeps the rules of package outbox. It is for
// tests only. [Run] has a subtest for each rule; [Memory] is the reference, an outbox in
// memory for tests of programs that write or publish messages; [Sink] collects what a
// publisher sends.
package outboxtest
