/* The store: it compares and moves. Each inline is part of one atomic step.
   Every change of the record goes through write. A BUG_ macro leaves out one
   comparison. */

/* The clock: what has become of time is seen only by who looks. */
inline clock() {
	if
	:: lapses > 0 && (rec.st == processing || rec.st == started) && !rec.over -> lapses--; rec.over = true
	:: expiries > 0 && (terminal(rec.st) || rec.st == released) && !rec.expired -> expiries--; rec.expired = true; gen++
	:: true
	fi
}

/* write gives the record a new state, whoever does it. */
inline write(to, result) {
	rule(settled_stays, !terminal(rec.st) || rec.expired);
	if
	:: to == completed || to == failed ->
		rule(one_outcome, key[gen].first == 0 || key[gen].first == result);
		if :: key[gen].first == 0 -> key[gen].first = result :: else fi
	:: to == released && key[gen].strict ->
		rule(doubt_kept, key[gen].effects == 0)
	:: else
	fi;
	rec.st = to; rec.outcome = result; rec.over = false; rec.expired = false
}

/* hand gives the record to another: a higher fence, a fresh owner. */
inline hand(base, who, pol, tries) {
#ifdef BUG_FENCE_STAYS
	rec.fence = (base == 0 -> 1 : base);
#else
	rec.fence = base + 1;
#endif
	rule(fence_grows, rec.fence > highest);
	if :: rec.fence > highest -> highest = rec.fence :: else fi;
	rec.owner = who; rec.policy = pol; rec.attempt = tries
}

/* Proposal.Insert: the floor is the highest fence that was swept. */
inline insert(to, who, pol, tries) {
	write(to, 0);
	hand(floor, who, pol, tries);
	lives++; rec.created = lives
}

/* Proposal.Replace. anew: in place of an expired record. */
inline replace(to, who, pol, tries, result, anew) {
	write(to, result);
	hand(rec.fence, who, pol, tries);
	if :: anew -> lives++; rec.created = lives :: else fi
}

/* What a Swap compares: all that was seen. */
#ifdef BUG_BLIND_SWAP
#define same(seen) (rec.st != absent)
#else
#define same(seen) (rec.st == seen.st && rec.fence == seen.fence && rec.owner == seen.owner)
#endif

/* "The owner is me" is a win, in the state that was proposed. */
#ifdef BUG_OWN_CLAIM_LOST
#define mine(who, state) false
#else
#define mine(who, state) (rec.owner == who && rec.st == state)
#endif

/* What a Settle compares. */
#define owns(who, held) (rec.owner == who && rec.fence == held)
#if defined(BUG_SETTLE_UNCHECKED)
#define may_settle(who, held) (rec.st != absent)
#elif defined(BUG_SETTLE_UPSERTS)
#define may_settle(who, held) (rec.st == absent || owns(who, held) && rec.st == processing)
#elif defined(BUG_SETTLE_BY_STATE)
#define may_settle(who, held) (rec.st == processing)
#elif defined(BUG_SETTLE_BY_FENCE)
#define may_settle(who, held) (rec.fence == held && rec.st == processing)
#elif defined(BUG_SETTLE_TWICE)
#define may_settle(who, held) (owns(who, held) && (rec.st == processing || terminal(rec.st)))
#else
#define may_settle(who, held) (owns(who, held) && rec.st == processing)
#endif

/* Settlement.Done: the same again succeeds. */
#ifdef BUG_DONE_BY_STATE
#define done_before(who, held, to, result) (owns(who, held) && rec.st == to)
#else
#define done_before(who, held, to, result) (owns(who, held) && rec.st == to && (!terminal(to) || rec.outcome == result))
#endif

/* Settle by the owner. ok: the store said nil; else it said ErrLeaseLost. */
inline settle(who, held, to, tries, result, ok) {
	if
	:: may_settle(who, held) ->
		rule(only_owner_settles, owns(who, held) && rec.st == processing);
		write(to, result);
		rec.attempt = tries; ok = true
	:: !may_settle(who, held) -> ok = done_before(who, held, to, result)
	fi
}

/* remove is what a sweep does with one record. */
inline remove() {
	rule(swept_was_over, rec.expired && (terminal(rec.st) || rec.st == released));
#ifndef BUG_FENCE_RESTARTS
	if :: rec.fence > floor -> floor = rec.fence :: else fi;
#endif
	rec.st = absent; rec.fence = 0; rec.owner = 0; rec.policy = RETRY; rec.attempt = 0;
	rec.outcome = 0; rec.created = 0; rec.over = false; rec.expired = false
}
