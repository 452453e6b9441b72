// Package model is a model of the claim protocol in Promela, the language of
// Spin. Spin searches every order of the steps of 3 callers of one key (4 in the
// long form), with crashes, freezes, lapsed leases and lost replies between any
// two steps. The package has only tests. They need spin and gcc, and are skipped
// without them. With TinyCC (tcc) they take half as long.
//
// # The models
//
//   - claim.pml: the protocol of package store and the Guard. store.pml
//     is the store (Insert, Replace, Swap, Settle and Done, Sweep), decide.pml
//     is store.Decide, caller.pml a call from its claim to its settlement,
//     others.pml sweeps and operators. They use the names of the code.
//   - atomic.pml: claim, effect and record in one transaction.
//   - lease.pml: leases, renewals and deadlines, with a clock.
//   - step.pml: a step of a call, and its record in the record of the call.
//   - durable.pml: a store with a synchronous standby, a replication that is cut, and
//     fail-overs.
//   - saga.pml: a saga with an event, a refusal, a deadline, timers and a message. It has
//     two workers, and the callers of its start and its event, also in the long form.
//   - rules.pml: how a rule is checked, and a place marked.
//
// One step of claim.pml is one operation of the store together with the caller's
// reaction to its answer. A caller can wait between two steps for any time, so a
// frozen owner needs no step of its own. A lease may lapse at each read. Budgets
// (LAPSES, CRASHES, LOSSES, …) limit the number of faults; they are the macros at
// the head of each model.
//
// # The questions
//
// variants_test.go lists the variants of the models, of three kinds:
//
//   - holds: Spin must search all states without a violation, and must reach the
//     named places. A search without a take-over proves nothing about take-overs.
//   - bugs: the variant omits one comparison, and Spin must find that the named
//     rule is violated.
//   - reached: the variant claims that a place is never reached, and Spin must
//     find that the claim is wrong.
//
// Four callers (SEMEL_EVIDENCE=1) have smaller budgets, because each caller
// multiplies the number of states.
//
// The rules, each with the number of the rule in DESIGN.md (guarantees: the
// promises of the policies and of Atomic in docs/guarantees.md):
//
//	one_outcome          4, 8        no two recorded outcomes in one generation of a key
//	told_alike           4, 8        each caller that gets a recorded outcome gets the first one
//	settled_stays        3, 4, 8     a terminal record does not change until it expires
//	only_owner_settles   4           owner, fence and state: an owner that lost its lease is refused
//	own_claim_won        2           a caller whose reply was lost finds its own claim
//	ran_once             2           if only replies are lost, the handler runs exactly once
//	fence_grows          5           the fence grows with each new owner, also after a sweep
//	swept_was_over       7           a sweep removes only expired records
//	at_most_once         guarantees  park: one effect at most; retry with a derived key, too
//	doubt_kept           9           park: an effect is recorded or unknown, never lost
//	token_once           16          a token runs the reserved call, and no later generation of the key
//	one_inside           6, 7        an owner has stopped before another starts
//	live_stays           3           a lease renewed after it was read is not taken over
//	settled_once         4           the same, with a clock
//	together             guarantees  Atomic: the effect exists if and only if the record does
//	not_again            20          no later owner repeats a step that is recorded in this life
//	true_replay          20          a replayed step has had its effect in this life
//	only_owner           20          only the owner of the claim records a step
//	told_kept            durable     after a caller was told the outcome, the handler does not run again
//	order                saga 2      compensations run in the reverse order of start
//	back_first           saga 5      no step has its effect after a compensation
//	exact                saga 4      an ended saga is done, or exactly undone
//	found                22          a saga that has begun and not ended has a timer
//	published            21          a message is deleted only after it was sent
//	true_message         21          a message that is sent is of a recorded step
//
// Rule 1 is decide.pml itself; its branches on policy, state and token are
// under test in the variants of park, mixed policies and reservation. Rule 17
// is checked by at_most_once and doubt_kept with a reconciler.
//
// # What is left out
//
//   - Payloads and fingerprints (12), scopes (several keys), tombstones (10),
//     the limit of attempts and backoff (13), waiters (14), Rerun (8), outages
//     (11), HTTP and consumers. Tests and the bug museum cover them.
//   - Liveness: the models do not check that a doubt is resolved, or a waiter
//     woken, in the end. They check only that no rule is violated.
//   - Clocks that run at different speeds, and a store's clock that is set
//     back. The model's fence is a counter, which does not depend on a clock.
//     claim.pml has no time. lease.pml has no crash, because a caller that waits
//     for ever is the same.
//   - A store that loses acknowledged changes, except as a bug of durable.pml.
//   - The agreement of the model with the code. The model was written by hand
//     from the code; the conformance suite, histories and mutants test the code.
//   - Faults that need more than the budgets, or more than 4 callers.
package model
