package model

// variant is one question to the model, and the answer that is expected.
type variant struct {
	name  string
	rule  string   // of the list in doc.go
	file  string   // the model; empty: claim.pml
	set   []string // macros, without the -D
	four  []string // macros that are added for four callers: smaller budgets
	fails string   // the assertion that must be violated; empty: all hold
	marks []string // places that a search without a violation must have reached
	rare  []string // such places that the smaller budgets for four callers leave out
}

// quiet is a world in which nothing goes wrong but replies that are lost.
var quiet = []string{"LAPSES=0", "CRASHES=0", "ERRORS=0", "LEAVES=0", "LOSSES=3", "NO_DOUBT"}

// janitors run with few other troubles, for their own steps cost states.
var janitors = []string{"SWEEPS=2", "EXPIRIES=1", "LOSSES=0", "LEAVES=0", "ERRORS=0", "LAPSES=1"}

// fewer troubles are enough where a fourth caller brings trouble enough.
var fewer = []string{"LOSSES=0", "LEAVES=0", "ERRORS=0"}

func with(a []string, more ...string) []string { return append(append([]string{}, a...), more...) }

// holds must be so whatever goes wrong.
var holds = []variant{
	{name: "retry: one recorded outcome", rule: "2-4, 8", set: []string{"POLICY=RETRY"}, four: fewer,
		marks: []string{"took_over", "zombie_refused", "replayed", "swap_lost", "in_progress", "ran_twice"},
		rare:  []string{"own_claim_found", "attempt_failed", "gave_back", "other_outcome_refused"}},
	{name: "retry with a derived key: one effect", rule: "15", set: []string{"DERIVED", "EXACTLY_ONCE"}, four: fewer,
		marks: []string{"took_over", "replayed"}},
	{name: "lost replies alone: it runs exactly once", rule: "2", set: quiet,
		marks: []string{"own_claim_found", "replayed", "in_progress"}},
	{name: "park: one effect at most", rule: "guarantee park, 9", set: []string{"POLICY=PARK"}, four: []string{"LOSSES=0", "LEAVES=0"},
		marks: []string{"parked", "refused_parked", "zombie_refused", "replayed"}, rare: []string{"gave_back"}},
	{name: "park and retry on one key: park wins", rule: "guarantees, 1", set: []string{"MIXED", "LEAVES=0"}, four: fewer,
		marks: []string{"parked", "took_over", "replayed", "ran_twice"}},
	{name: "reconcile: answers when nothing can happen any more", rule: "17", set: []string{"POLICY=PARK", "RECONCILE", "ERRORS=0"}, four: []string{"LOSSES=0", "LEAVES=0", "LAPSES=1"},
		marks: []string{"said_it_happened", "said_it_did_not", "undecided", "replayed", "parked", "zombie_refused"}},
	{name: "two operators resolve", rule: "3, 4", set: []string{"POLICY=PARK", "RESOLVES=2", "LEAVES=0", "LOSSES=0"}, four: []string{"ERRORS=0", "CRASHES=0"},
		marks: []string{"resolved", "resolve_refused", "replayed", "zombie_refused"}},
	{name: "sweep under retry", rule: "5, 7", set: janitors, four: []string{"CRASHES=0", "SWEEPS=1", "ROUNDS=2"},
		marks: []string{"swept", "replayed", "began_anew", "recovered"}},
	{name: "sweep under park", rule: "5, 7", set: with(janitors, "POLICY=PARK"), four: []string{"CRASHES=0", "ROUNDS=2"},
		marks: []string{"swept", "replayed", "recovered", "began_anew"}},
	{name: "a token delivered twice", rule: "16", set: []string{"RESERVE", "POLICY=PARK", "EXPIRIES=1", "LOSSES=0"}, four: []string{"LEAVES=0", "ERRORS=0"},
		marks: []string{"redeemed", "token_expired", "replayed", "swap_lost", "began_anew"}},
	{name: "atomic: the effect with the record", rule: "guarantee atomic", file: "atomic.pml",
		marks: []string{"replayed", "zombie_refused", "rolled_back", "commit_lost", "waited", "handler_failed", "failed_for_good"}},
	{name: "atomic without crashes: it is done in the end", rule: "guarantee atomic", file: "atomic.pml", set: []string{"CRASHES=0", "KILLS=0", "ERRORS=0"},
		marks: []string{"replayed", "commit_lost", "waited"}},
	{name: "lease: an owner stops before another starts", rule: "6, 7", file: "lease.pml", set: []string{"RENEWALS=1", "END=6"}, four: []string{"END=4"},
		marks: []string{"took_over", "renewed", "renewal_lost", "answer_lost", "arrived_late", "stopped", "claim_too_late", "swap_lost", "late_settlement", "refused"}},
	{name: "steps under retry: a recorded one is not repeated", rule: "20", file: "step.pml", set: []string{"CRASHES=1", "LOSSES=0", "ERRORS=1"}, four: []string{"CRASHES=0", "LAPSES=1", "ERRORS=1", "LOSSES=0"},
		marks: []string{"took_over", "replayed", "refused", "began_anew", "in_doubt"}},
	{name: "steps under park: one effect in a life", rule: "20, guarantee park", file: "step.pml", set: []string{"POLICY=PARK"}, four: []string{"CRASHES=1", "LAPSES=1"},
		marks: []string{"parked", "resolved", "replayed", "refused", "began_anew", "sent_again"}},
	{name: "standby, retry: what a caller was told stays", rule: "durable", file: "durable.pml", four: []string{"GIVE_UPS=1"},
		marks: []string{"took_over", "own_claim_found", "replayed", "lost", "doubt_found", "refused", "settled_again"}},
	{name: "standby, park: one effect", rule: "guarantee park", file: "durable.pml", set: []string{"POLICY=PARK"}, four: []string{"GIVE_UPS=1"},
		marks: []string{"parked", "own_claim_found", "replayed", "lost", "doubt_found", "refused", "settled_again"}},
	{name: "standby, no lapse: no two handlers at once", rule: "2", file: "durable.pml", set: []string{"LAPSES=0"}, four: []string{"GIVE_UPS=1"},
		marks: []string{"own_claim_found", "replayed", "lost", "doubt_found", "settled_again"}},
	{name: "saga: refused, or too late, it is exactly undone", rule: "22, saga 2, 4, 5, 7", file: "saga.pml",
		marks: []string{"turned_back", "undone", "late", "event_refused", "waited", "undo_failed", "took_over"}},
	{name: "saga: it succeeds, or is exactly undone", rule: "22, saga 2, 4, 5, 7", file: "saga.pml", set: []string{"REFUSED=0"},
		marks: []string{"turned_back", "succeeded", "undone", "late", "refused", "waited", "took_over"}},
	{name: "saga: a message of a step is sent, once it is recorded", rule: "21", file: "saga.pml", set: []string{"PUBLISHES", "LATES=0"},
		marks: []string{"sent_again", "undone"}},
}

// bugs leave out what a rule asks for, and must be found. The search looks for
// the violation of one rule only.
var bugs = []variant{
	{name: "anybody settles", rule: "4", set: []string{"BUG_SETTLE_UNCHECKED"}, fails: "one_outcome"},
	{name: "a settlement compares the state alone", rule: "4", set: []string{"BUG_SETTLE_BY_STATE"}, fails: "only_owner_settles"},
	{name: "a settlement inserts", rule: "4", set: with(janitors, "BUG_SETTLE_UPSERTS"), fails: "only_owner_settles"},
	{name: "a second settlement overwrites the first", rule: "4", set: []string{"BUG_SETTLE_TWICE"}, four: []string{"LEAVES=0", "ERRORS=0", "CRASHES=0", "LAPSES=1"}, fails: "settled_stays"},
	{name: "another outcome counts as the same again", rule: "4", set: []string{"BUG_DONE_BY_STATE"}, four: []string{"LEAVES=0", "ERRORS=0", "CRASHES=0", "LAPSES=1"}, fails: "told_alike"},
	{name: "an own claim is a conflict", rule: "2", set: with(quiet, "BUG_OWN_CLAIM_LOST"), fails: "ran_once"},
	{name: "an own swap is a conflict", rule: "2", set: []string{"BUG_OWN_CLAIM_LOST"}, fails: "own_claim_won"},
	{name: "a claim is sent again with another owner", rule: "2", set: with(quiet, "BUG_RESENT_WITH_OTHER_OWNER"), fails: "ran_once"},
	{name: "the owner is the process", rule: "2", set: []string{"POLICY=PARK", "BUG_OWNER_OF_PROCESS"}, fails: "at_most_once"},
	{name: "retry is called exactly once", rule: "guarantee retry", set: []string{"EXACTLY_ONCE"}, fails: "at_most_once"},
	{name: "park runs again", rule: "guarantee park", set: []string{"POLICY=PARK", "BUG_PARK_RERUNS"}, fails: "at_most_once"},
	{name: "the call's policy counts, not the record's", rule: "guarantees", set: []string{"MIXED", "LEAVES=0", "LOSSES=0", "BUG_POLICY_OF_THE_CALL"}, four: []string{"LAPSES=1", "ERRORS=0"}, fails: "at_most_once"},
	{name: "park runs what has failed under retry", rule: "1", set: []string{"MIXED", "LEAVES=0", "LOSSES=0", "BUG_FAILED_ATTEMPT_FORGOTTEN"}, four: []string{"LAPSES=0", "CRASHES=0"}, fails: "at_most_once"},
	{name: "a stale decision is written without a comparison", rule: "3", set: []string{"BUG_BLIND_SWAP"}, fails: "settled_stays"},
	{name: "a token starts without a comparison", rule: "16", set: []string{"RESERVE", "POLICY=PARK", "BUG_BLIND_SWAP"}, fails: "at_most_once"},
	{name: "a token opens a later life of its key", rule: "16", set: []string{"RESERVE", "POLICY=PARK", "EXPIRIES=1", "BUG_TOKEN_OF_ANY_LIFE"}, fails: "token_once"},
	{name: "an operator resolves without a comparison", rule: "4", set: []string{"POLICY=PARK", "RESOLVES=2", "BUG_BLIND_SWAP"}, fails: "settled_stays"},
	{name: "a reconciler says no too early", rule: "17", set: []string{"POLICY=PARK", "RECONCILE", "BUG_NO_TOO_EARLY"}, fails: "at_most_once"},
	{name: "an abandoned reconcile releases", rule: "17", set: []string{"POLICY=PARK", "RECONCILE", "BUG_UNDO_OF_RECONCILE_RELEASES"}, fails: "doubt_kept"},
	{name: "a sweep deletes a lapsed claim", rule: "7", set: with(janitors, "POLICY=PARK", "BUG_SWEEPS_LAPSED"), fails: "at_most_once"},
	{name: "a sweep does not check again", rule: "7", set: with(janitors, "POLICY=PARK", "BUG_SWEEP_DOES_NOT_RECHECK"), fails: "swept_was_over"},
	{name: "the fence begins anew after a sweep", rule: "5", set: with(janitors, "POLICY=PARK", "BUG_FENCE_RESTARTS"), fails: "fence_grows"},
	{name: "a take-over keeps the fence", rule: "5", set: []string{"BUG_FENCE_STAYS"}, fails: "fence_grows"},
	{name: "the fence begins anew, and a settlement compares nothing else", rule: "4, 5", set: with(janitors, "BUG_FENCE_RESTARTS", "BUG_SETTLE_BY_FENCE"), fails: "only_owner_settles"},
	{name: "atomic: the effect commits first", rule: "guarantee atomic", file: "atomic.pml", set: []string{"BUG_EFFECT_IS_ITS_OWN_TRANSACTION"}, fails: "at_most_once"},
	{name: "atomic: the record commits first", rule: "guarantee atomic", file: "atomic.pml", set: []string{"BUG_RECORD_IS_ITS_OWN_TRANSACTION"}, fails: "together"},
	{name: "atomic: a row that is not there is locked", rule: "2", file: "atomic.pml", set: []string{"BUG_ABSENT_ROW_IS_NOT_LOCKED"}, fails: "at_most_once"},
	{name: "lease: counted from the reply", rule: "6", file: "lease.pml", set: []string{"BUG_DEADLINE_FROM_REPLY"}, fails: "one_inside"},
	{name: "lease: counted from a renewal without its answer", rule: "6", file: "lease.pml", set: []string{"BUG_DEADLINE_BY_SENDING"}, fails: "one_inside"},
	{name: "lease: the deadline waits for a renewal", rule: "6", file: "lease.pml", set: []string{"BUG_DEADLINE_WAITS_FOR_RENEWAL"}, fails: "one_inside"},
	{name: "lease: a handler that was stopped settles all the same", rule: "4", file: "lease.pml", set: []string{"BUG_ZOMBIE_SETTLES"}, fails: "settled_once"},
	{name: "lease: no margin", rule: "6", file: "lease.pml", set: []string{"MARGIN=0"}, fails: "one_inside"},
	{name: "lease: a late claim starts its handler", rule: "6", file: "lease.pml", set: []string{"BUG_STARTS_LATE"}, fails: "one_inside"},
	{name: "lease: judged by the caller's clock", rule: "6", file: "lease.pml", set: []string{"BUG_OWN_CLOCK"}, fails: "one_inside"},
	{name: "lease: a swap does not compare its end", rule: "3", file: "lease.pml", set: []string{"BUG_SWAP_IGNORES_UNTIL"}, four: []string{"END=4"}, fails: "live_stays"},
	{name: "steps: anybody records one", rule: "20", file: "step.pml", set: []string{"BUG_STEP_RECORDED_WITHOUT_LEASE"}, fails: "only_owner"},
	{name: "steps: a frozen worker records one in the next life", rule: "20", file: "step.pml", set: []string{"BUG_STEP_RECORDED_WITHOUT_LEASE"}, fails: "true_replay"},
	{name: "steps: they expire by themselves", rule: "20", file: "step.pml", set: []string{"BUG_STEPS_EXPIRE_BY_THEMSELVES"}, fails: "not_again"},
	{name: "steps: a parked call outlives them", rule: "20", file: "step.pml", set: []string{"POLICY=PARK", "BUG_STEPS_EXPIRE_BY_THEMSELVES"}, fails: "at_most_once"},
	{name: "steps: they outlive their record", rule: "20", file: "step.pml", set: []string{"BUG_STEPS_OUTLIVE_THEIR_RECORD"}, fails: "true_replay"},
	{name: "steps: a take-over forgets them", rule: "20", file: "step.pml", set: []string{"BUG_TAKEOVER_FORGETS_STEPS"}, fails: "not_again"},
	{name: "steps: a no although one is in doubt", rule: "20", file: "step.pml", set: []string{"POLICY=PARK", "BUG_NO_DESPITE_A_STEP_IN_DOUBT"}, fails: "at_most_once"},
	{name: "standby: a change is acknowledged before the standby has it", rule: "durable", file: "durable.pml", set: []string{"BUG_ACKNOWLEDGES_EARLY"}, fails: "told_kept"},
	{name: "standby: a claim is acknowledged before the standby has it", rule: "durable", file: "durable.pml", set: []string{"POLICY=PARK", "BUG_ACKNOWLEDGES_EARLY"}, fails: "at_most_once"},
	{name: "standby: a plain read confirms", rule: "durable", file: "durable.pml", set: []string{"BUG_PLAIN_READ_CONFIRMS"}, fails: "told_kept"},
	{name: "standby: an undo that comes late removes a later claim", rule: "2", file: "durable.pml", set: []string{"LAPSES=0", "BUG_UNDO_COMES_LATE"}, fails: "one_inside"},
	{name: "standby: the same under park", rule: "guarantee park", file: "durable.pml", set: []string{"POLICY=PARK", "BUG_UNDO_COMES_LATE"}, fails: "at_most_once"},
	{name: "saga: an event comes after it has turned back", rule: "saga 2", file: "saga.pml", set: []string{"BUG_EVENT_AFTER_BACK"}, fails: "order"},
	{name: "saga: compensations in the order of start", rule: "saga 2", file: "saga.pml", set: []string{"BUG_ORDER_OF_START"}, fails: "order"},
	{name: "saga: a step in doubt is not undone", rule: "saga 2", file: "saga.pml", set: []string{"BUG_DOUBT_IS_NOT_UNDONE"}, fails: "exact"},
	{name: "saga: that it has turned back is not recorded", rule: "saga 5", file: "saga.pml", set: []string{"BUG_BACK_IS_NOT_RECORDED", "REFUSED=0"}, fails: "back_first"},
	{name: "saga: other systems ignore the fence of a frozen worker", rule: "saga 5", file: "saga.pml", set: []string{"BUG_OTHER_SYSTEMS_IGNORE_FENCES"}, fails: "back_first"},
	{name: "saga: it begins before its timer is set", rule: "22", file: "saga.pml", set: []string{"BUG_BEGINS_BEFORE_ITS_TIMER"}, fails: "found"},
	{name: "saga: its timer is dropped before it has ended", rule: "22", file: "saga.pml", set: []string{"BUG_TIMER_DROPPED_BEFORE_THE_END"}, fails: "found"},
	{name: "saga: a message is there before its step is recorded", rule: "21", file: "saga.pml", set: []string{"PUBLISHES", "BUG_MESSAGE_BEFORE_COMMIT"}, fails: "true_message"},
	{name: "saga: a message is deleted before it was sent", rule: "21", file: "saga.pml", set: []string{"PUBLISHES", "BUG_MESSAGE_DELETED_FIRST"}, fails: "published"},
}

// reached claims that something never happens, which is wrong: so the search
// does get there, and a rule that holds holds of something.
var reached = []variant{
	{name: "a claim is never taken over", rule: "3", set: []string{"NEVER=M_took_over"}, fails: "never_reached"},
	{name: "no zombie is ever refused", rule: "4", set: []string{"NEVER=M_zombie_refused"}, fails: "never_reached"},
	{name: "nothing is ever replayed", rule: "8", set: []string{"NEVER=M_replayed"}, fails: "never_reached"},
	{name: "nothing is ever parked", rule: "guarantee park", set: []string{"POLICY=PARK", "NEVER=M_parked"}, fails: "never_reached"},
}
