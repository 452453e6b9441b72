// Package semel makes an operation take effect once, however often its call,
// request or message arrives, and gives every duplicate the first answer.
//
// # What is promised
//
// "Exactly once" hides several promises. A Guard makes one of these:
//
//   - Leased, on doubt [Retry] (the default): one recorded outcome for each
//     key, and equal replays. The handler normally runs once. After a crash, a
//     pause, a partition or a plain error it may run again, even at the same
//     time as a frozen first run; it is handed a fencing token and derived
//     keys to pass downstream.
//   - Leased, on doubt [Park]: once the handler has started, nothing runs it
//     again by itself. The record turns unknown, and a reconciler or an
//     operator decides. An external effect happens at most once, as long as a
//     reconciler that answers "it did not happen" is right for good.
//   - Atomic, by a store's own Atomic type: the record and the handler's
//     writes commit in one transaction of one database. Those writes happen
//     exactly once; calls to other systems from the handler do not.
//
// Doubt is one event with many causes: the lease was lost, the process died,
// the handler panicked or returned a plain error. [NoEffect] and [Final] say
// that there is none.
//
// Each holds while the outcome is kept: Options.Retention, 24 h by default. What
// has expired counts as absent, and stays until a [Sweep], which somebody has to
// run.
//
// # Errors
//
// A call fails with a [*Failure], which is kept and the same for each
// duplicate; with an [*Error] whose Reason is one of this package's, such as
// [ErrInProgress]; or with what the handler returned, which is not kept. Use
// errors.Is and errors.As.
//
// # Where things are
//
// Package store is the seam to the databases, package semelhttp the door for
// HTTP servers and clients. This module requires no other; stores and doors
// that need a client library are modules of their own.
package semel
