// Package campaign has tests that kill consumers of Amazon SQS and of Apache Pulsar. The
// consumers are processes of their own. They end by kill -9 while they handle messages
// with an Atomic over one SQLite file, and the rows in that file are the effects that the
// tests count. The package is in the module of the examples because that module requires
// both adapters and the store already; the module of an adapter must not require a store.
package campaign
