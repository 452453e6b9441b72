// Package semelotel makes OpenTelemetry traces and metrics of Semel's calls.
//
//	tel, err := semelotel.New(nil)
//	guard, err := semel.New(tel.Store(st), &semel.Options{Observe: tel.Observe(semel.LogEvents(nil))})
//	run := tel.Runner(guard)
//	receipt, err := semel.Do(ctx, run, call, charge)
//
// [Telemetry.Observe] counts calls, and measures handlers. [Telemetry.Store] measures
// the store, and writes the trace of each run into its record, next to the holder.
// [Telemetry.Runner] makes a span for each call, in which the spans of the handler are.
// [Telemetry.ObserveMessages] counts messages, and [Telemetry.CountInDoubt] records in
// doubt. Runner needs Observe; each of the others can be used alone.
//
// # Spans
//
// The span of a call is named "semel" and the operation, such as "semel charge". Its
// attributes are semel.operation, semel.outcome (see [semel.Event.Outcome]),
// semel.policy, semel.attempt and semel.key_hash, the digits by which logs name a key.
// The key, the tenant, the payload and the texts of errors are in no attribute;
// [Options] adds the key and the tenant.
//
// The span of a duplicate links to the span of the run that it depends on: for a replay
// the first run, for a refusal the run in progress, for a takeover the run that died.
// Links need Store and Runner around the same Guard, and the linked run must have been
// sampled. There is no link if a timer's [semel.Guard.Reconcile] or an operator has
// decided about the call.
//
// A call that does not go through Runner, such as one of pgstore.Do, of a batch or of a
// saga, has a span, too. It is made when the call has ended, so the spans of its
// handler are beside it, and the links of its duplicates lead to the span in which it
// was made.
//
// An Atomic takes its store directly. Give it [Telemetry.TxHolder], so that its records
// have traces, too:
//
//	atomic, err := pgstore.NewAtomic(st, &semel.Options{Observe: tel.Observe(nil), TxHolder: tel.TxHolder})
//
// A batch has one context, so the records of all its calls have the same trace.
// kafkapg.ServeKeyed makes no spans. If its context has a span, every record gets the
// trace of that span; otherwise the records have no trace.
//
// # Metrics
//
//   - semel.calls: calls that have ended, by semel.operation and semel.outcome. If an
//     Atomic repeats a transaction, each of its tries counts.
//   - semel.handler.duration (s): runs of handlers, by semel.operation and semel.outcome.
//   - semel.store.duration (s): requests to the store, by semel.store.request and
//     semel.store.answered, which is false if the store did not answer.
//   - semel.leases.lost: runs whose lease was lost, by semel.operation.
//   - semel.records.in_doubt and semel.records.in_doubt.age (s): see CountInDoubt.
//   - semel.messages and semel.message.duration (s): tries of messages, by
//     semel.message.action and semel.message.reason.
//   - semel.message.events: other events of consumers, by semel.message.event.
package semelotel
