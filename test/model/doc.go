// Package model is a model of the claim protocol in Promela, the language of
// Spin. Spin looks at every order in which the steps of 3 (in the long form
// also 4) callers of one key can come, with crashes, freezes, lapsed leases and
// lost replies between any two of them. The package has only tests; they need
// spin and gcc, and skip without them.
//
// # The models
//
//   - claim.pml: the protocol as package store and the Guard have it. store.pml
//     is the store (Insert, Replace, Swap, Settle and Done, Sweep), decide.pml
//     is store.Decide, caller.pml a call from its claim to its settlement,
//     others.pml sweeps and operators. Names are those of the code.
//   - atomic.pml: claim, effect and record in one transaction.
//   - lease.pml: leases, renewals and deadlines, with a clock.
//   - rules.pml: how a rule is checked, and a place marked.
//
// One step of claim.pml is one operation of the store together with what its
// caller makes of the answer. A caller can stand still between two steps for
// any time, so a frozen owner needs no step of its own. A lease may lapse
// whenever somebody looks at it. Budgets (LAPSES, CRASHES, LOSSES, …) bound how
// often trouble comes; they are the macros at the head of each model.
//
// # The questions
//
// variants_test.go is the list. Each of holds must be searched to the end
// without a violation, and must have been at the places that it names: a search
// that never saw a take-over says nothing of take-overs. Each of bugs leaves
// out one comparison, and Spin must find the violation of the one rule that is
// named. Each of reached claims that a place is never reached, and must be
// wrong. Four callers (SEMEL_EVIDENCE=1) run with smaller budgets, for each of
// them multiplies the states.
//
// The rules, and the rule of the design they are about (guarantees: what the
// policies and Atomic promise):
//
//	one_outcome          4, 8        no two recorded outcomes in one generation of a key
//	told_alike           4, 8        who is told a recorded outcome is told the first
//	settled_stays        3, 4, 8     a terminal record does not change until it expires
//	only_owner_settles   4           owner, fence and state: a zombie is refused
//	own_claim_won        2           nobody loses to the own lost reply
//	ran_once             2           replies that are lost, and nothing else: exactly once
//	fence_grows          5           each change of hands, also after a sweep
//	swept_was_over       7           a sweep removes what has expired, and nothing else
//	at_most_once         guarantees  park: one effect at most; retry with a derived key, too
//	doubt_kept           9           park: an effect is recorded or unknown, never lost
//	token_once           16          a token runs what was reserved, and no later life
//	one_inside           6, 7        an owner has stopped before another starts
//	live_stays           3           a lease that was renewed since it was seen stays
//	settled_once         4           the same, with a clock
//	together             guarantees  Atomic: the effect is there if the record is
//
// Rule 1 is decide.pml itself; its branches on policy, state and token are
// under test in the variants of park, mixed policies and reservation. Rule 17
// is checked by at_most_once and doubt_kept with a reconciler.
//
// # What is left out
//
//   - Payloads and fingerprints (12), scopes (several keys), tombstones (10),
//     the limit of attempts and backoff (13), waiters (14), Rerun (8), outages
//     (11), HTTP and consumers. Tests and the bug museum see to those.
//   - Liveness. That a doubt is resolved, or a waiter woken, in the end is not
//     asked; only that nothing wrong happens on the way.
//   - Clocks that run at different speeds, and a store's clock that is set
//     back, except that a fence does not lean on it: the model's fence is the
//     counter alone. claim.pml has no time, and lease.pml no crash: a caller
//     that stands still for ever is the same.
//   - A store that loses what it has acknowledged.
//   - That the code is what the model says. It was written from the code by
//     hand; the conformance suite, histories and mutants test the code.
//   - More than the budgets and 4 callers. What breaks only with more is not found.
package model
