// Package semel makes an operation take effect once, however often its call, HTTP
// request or message arrives, and gives every duplicate the first answer.
//
//	guard, err := semel.New(store, nil)
//	...
//	receipt, err := semel.Do(ctx, guard, semel.Call{
//		Operation: "charge", Tenant: account, Key: id, Payload: semel.JSON(payment),
//	}, charge)
//
// The first call with a key claims it in the store, runs charge, and stores the
// result. A duplicate gets the stored result. If the process crashes, the claim's
// lease expires, and the next call decides what happens.
//
// # What is promised
//
//   - Leased, with the policy [Retry] (the default): the store keeps one outcome
//     for each key, and every duplicate gets it. The handler normally runs once.
//     After a crash, a long pause, a network partition or a plain error it may run
//     again, even while a frozen first run still exists. It gets a fencing token
//     and downstream keys, with which other systems can refuse a second effect.
//   - Leased, with the policy [Park]: after the handler has started, it does not
//     run again by itself. The record becomes unknown, and a reconciler or an
//     operator decides. The effect happens at most once, provided that a
//     reconciler that says [DidNotHappen] is right forever.
//   - Atomic, with a store's own Atomic type: the record and the handler's writes
//     commit in one transaction of one database, so the writes happen exactly
//     once. The handler's calls to other systems do not.
//
// A call is in doubt if its lease was lost, its process died, or its handler
// panicked or returned a plain error. With [NoEffect] or [Final] a handler says
// that there is no doubt.
//
// A handler with several effects makes each a step ([Execution.Step]). A step that has
// ended is recorded with its call and does not run again in a later attempt. It lives
// as long as the record of its call; docs/steps.md has the rules.
//
// The promises hold as long as the outcome is kept: Options.Retention, 24 h by
// default. Expired records stay in the store until a sweep removes them: see
// package sweep.
//
// # Errors
//
// A call fails with a [*Failure], which is kept and the same for each duplicate;
// with an [*Error], whose Reason is one of this package's errors such as
// [ErrInProgress]; or with the handler's own error, which is not kept. Use errors.Is and
// errors.As.
//
// # Other packages
//
// Package store has the interface of the stores, and its subpackages have the
// stores. Calls come in through package semelhttp (HTTP servers and clients),
// semelgrpc, semelconnect, semelmcp, semellambda or consume (messages of brokers).
// Package saga is for work in several steps that are undone if a later one fails,
// and package outbox for messages that a transaction sends. Packages sweep, erase
// and console are for operation, and semelotel makes traces and metrics. Package
// driver is for authors of stores, of HTTP middleware and of consumers. The module requires no other module; stores and
// consumers that need a client library are modules of their own.
package semel
