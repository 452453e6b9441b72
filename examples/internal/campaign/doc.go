// Package campaign has tests that kill consumers of Amazon SQS and of Apache Pulsar. The
// consumers are processes of their own, which end by kill -9 while they handle messages
// with an Atomic over one SQLite file; the rows in that file are the effects that are
// counted. It is in the module of the examples because no other module that may require
// both adapters and a store has them, and an adapter's own module requires no store.
package campaign
