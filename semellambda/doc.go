// Package semellambda makes the handlers of AWS Lambda functions take effect once:
// for direct invocations, HTTP requests, and batches of SQS, Kinesis and DynamoDB
// streams, all of which Lambda may deliver again.
//
//	handler, err := semellambda.Wrap(guard, semellambda.Options[Order]{
//		Operation: "charge", Tenant: tenantOf, KeyPointers: []string{"/detail/orderId"},
//	}, charge)
//	…
//	lambda.Start(handler)
//
// Inside the handler, semel.FromContext finds the execution. Each function takes a
// *semel.Guard or a store's Atomic.
//
//	Wrap                    any event
//	Proxy                   requests of API Gateway (REST and HTTP APIs), of an
//	                        Application Load Balancer and of function URLs
//	SQS, Kinesis, DynamoDB  batches, record by record
//
// # The end of an invocation
//
// Lambda stops an invocation at its time-out without asking. The context of the
// handler therefore ends a tenth of the remaining time earlier, at most 500 ms, so
// that the outcome of a handler that obeys its context is stored in time. A handler
// that ignores its context is stopped in its middle. No lease holds longer than the
// invocation, so that its key is free at the time-out: under Retry the next
// invocation runs the handler again, and under Park the call is parked. With
// dynamostore, Options.MaxSkew (2 s) comes on top. After a crash the lease holds for
// its remaining time, but never beyond the end of the invocation.
//
// Between two invocations Lambda freezes the process. A frozen process renews no
// lease, and its timers stand still. No lease is held then, as long as the handler
// does its work before it returns. The work of a goroutine that goes on after the
// return is not protected, and may never happen. If a process is frozen inside a
// handler, its lease expires, and another invocation may take over. When the first
// process goes on, its context ends, and it cannot store its outcome, because the
// fencing token has grown.
//
// # Cold starts
//
// Semel with dynamostore adds 1.1 ms to the start of a process: 1.0 ms are the packages
// of the client of DynamoDB, 0.1 ms the packages of Semel and the making of the store,
// the Guard and the wrapper. None of it sends a request. Measured on Linux, amd64, in
// a clone of the repository:
//
//	cd test && SEMEL_TEST_COMPARE=1 go test -v -run TestColdStart ./lambda
//
// # Batches
//
// The event source mapping must have ReportBatchItemFailures among its
// FunctionResponseTypes. Without that Lambda ignores the response, and an SQS message
// that failed is deleted.
//
//	the run of a record ended with           the record is
//	nil, or a stored result (a duplicate)    done
//	semel.ErrNotKept, ErrOutcomeNotStored    done, because its work is done
//	*semel.Failure, ErrParked, ErrMismatch   reported, in each delivery, until the
//	                                         source gives it to its dead letters
//	a record without a key                   the same
//	any other error, a panic                 reported, and runs again
//
// A key whose call has failed for good stays failed for the Retention. A message that
// is sent back from the dead letters is then reported again without a run, until the key
// is reopened: by [semel.Guard.Reopen] or semel inspect reopen.
//
// Order is kept. After a record that is not done, the later records of its FIFO
// message group do not run, and are reported; in a stream no later record of the
// batch runs. The same is true of later records with its key. When the time of the
// invocation is over, the records that are left do not run, and are reported.
//
// A record that is reported comes again until the source's limit: maxReceiveCount of
// the queue, MaximumRetryAttempts and MaximumRecordAgeInSeconds of the stream. Set
// the limit and a dead-letter queue or an on-failure destination. By default
// Kinesis and DynamoDB streams try until the record expires, and the shard stands still.
//
// SQS counts each report as a receive, also of a message that did not run: one after a
// failed message of its FIFO group, one whose key runs elsewhere, each one while the
// store is away. With a small maxReceiveCount such messages are dead-lettered unrun. Set
// it to 100, with a visibility time-out of six times the function's Timeout: at 30 s that
// is 5 hours. A message that has failed for good is then received 100 times, too, before it
// is dead-lettered, and its FIFO group waits for all that time. If the group has to go on
// sooner, choose a smaller number, or let the handler write such a failure down and return
// nil. semel.Options.MaxAttempts of a Guard limits the runs of a message. An Atomic
// has no such limit: its handler runs until it returns semel.Final, or the limit of the
// queue. Options.Wait, of about the time of a run, keeps duplicates of a run in progress
// from being reported.
//
// # The identity of a record
//
// Two records may have one document and be two events. Therefore these count, unless
// Options.Key and Options.Payload decide:
//
//	                                     in the key, with KeyPointers   compared
//	the type of an SQS message's event   yes                            yes
//	the name of the queue, the table     no                             yes
//	or the stream
//
// The event type is in the message attributes that driver.EventType of package
// consume/driver names, such as event-type and ce-type. No other attribute counts,
// because a trace or a retry changes it. A function that reads two queues whose messages
// have equal keys needs Options.Key: otherwise the second message is an ErrMismatch, and
// reported. Account and region of the source do not count. A message in a queue of dead
// letters counts as one of the queue that it came from.
//
// A message that is moved by hand to a queue of another name is an ErrMismatch if its
// key has a record: send it back to its own queue.
//
// Keep outcomes for longer than the source keeps records: set semel.Options.Retention
// to 14 days for a queue with the longest retention.
package semellambda
