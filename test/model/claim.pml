/* The claim protocol: one key, N callers, one store.

   Each atomic step is one operation of the store with what its caller makes of
   the answer (that is local), or one step of a handler. Between two steps of a
   caller anything may happen to the others: so every caller can freeze at each
   point, for as long as it takes, without a step that says so.

   Time is left out: a lease may lapse, and a retention end, whenever somebody
   looks. Budgets bound how often. lease.pml is the model with a clock. */

#include "rules.pml"

/* Budgets: how often what may go wrong goes wrong, for all callers together. */
#ifndef LAPSES
#define LAPSES 2 /* a lease, or a reservation, is over */
#endif
#ifndef CRASHES
#define CRASHES 1 /* a caller dies */
#endif
#ifndef LOSSES
#define LOSSES 1 /* a request was applied, and its reply is lost */
#endif
#ifndef ERRORS
#define ERRORS 1 /* a handler returns an error */
#endif
#ifndef LEAVES
#define LEAVES 1 /* a caller leaves between its claim and its handler */
#endif
#ifndef EXPIRIES
#define EXPIRIES 0 /* a retention ends: the key begins anew */
#endif
#ifndef SWEEPS
#define SWEEPS 0 /* steps of a sweep */
#endif
#ifndef RESOLVES
#define RESOLVES 0 /* an operator's verdicts */
#endif
#ifndef ROUNDS
#define ROUNDS 3 /* proposals of one call, each with an owner token of its own */
#endif

mtype = { absent, started, processing, released, completed, failed, unknown };

#define RETRY 0
#define PARK 1

/* The record. Of Until there is only whether it has passed. */
typedef Record {
	mtype st = absent;
	byte fence;
	byte owner;   /* 0: nobody's */
	bit policy;
	byte attempt;
	byte outcome; /* each run has another; 0: none */
	byte created; /* which life of the key it is */
	bool over;    /* Until has passed: lapsed */
	bool expired  /* Expires has passed */
};
Record rec;
byte floor; /* the highest fence that was swept */
byte lives; /* lives begun: the store's clock, as far as Created needs it */

byte lapses = LAPSES, crashes = CRASHES, losses = LOSSES, errors = ERRORS, leaves = LEAVES, expiries = EXPIRIES;

#define terminal(s) (s == completed || s == failed)

/* What the rules speak of, and no store keeps. A generation of the key ends
   when its retention does, and not when its record disappears. */
byte gen;
typedef Generation {
	byte effects; /* that have happened in the outside world */
	byte pending; /* runs that may still have theirs */
	byte did;     /* whose effect it was: what a reconciler finds downstream */
	byte first;   /* the first recorded outcome */
	bool strict   /* a run under park has begun */
};
Generation key[EXPIRIES + 1];
byte highest; /* fence ever given */

#define R_one_outcome 1       /* no two recorded outcomes in one generation */
#define R_told_alike 2        /* whoever is told an outcome is told the first recorded one */
#define R_settled_stays 3     /* a terminal record does not change until it expires */
#define R_only_owner_settles 4 /* a zombie is refused */
#define R_fence_grows 5       /* each change of hands has a fence above all before */
#define R_own_claim_won 6     /* nobody loses to the own lost reply */
#define R_at_most_once 7      /* under park an effect happens once at most */
#define R_doubt_kept 8        /* under park what has had its effect is recorded or unknown */
#define R_swept_was_over 9    /* a sweep removes what has expired, and nothing else */
#define R_ran_once 10         /* without doubt, a crowd of callers runs it once */
#define R_token_once 11       /* a bearer runs what was reserved, and nothing later */
hidden byte one_outcome, told_alike, settled_stays, only_owner_settles, fence_grows, own_claim_won,
	at_most_once, doubt_kept, swept_was_over, ran_once, token_once;

#define M_took_over 1
#define M_zombie_refused 2
#define M_replayed 3
#define M_parked 4
#define M_own_claim_found 5
#define M_attempt_failed 6
#define M_gave_back 7
#define M_swept 8
#define M_recovered 9
#define M_began_anew 10
#define M_said_it_happened 11
#define M_said_it_did_not 12
#define M_undecided 13
#define M_resolved 14
#define M_resolve_refused 15
#define M_redeemed 16
#define M_token_expired 17
#define M_swap_lost 18
#define M_other_outcome_refused 19
#define M_refused_parked 20
#define M_in_progress 21
#define M_ran_twice 22

/* "It did not happen" is final, or is not said: nothing can happen any more. */
#ifdef BUG_NO_TOO_EARLY
#define can_say_no (key[gen].effects == 0)
#else
#define can_say_no (key[gen].effects == 0 && key[gen].pending == 0)
#endif

#include "store.pml"
#include "decide.pml"
#include "caller.pml"
#include "others.pml"

init {
	byte i;
	atomic {
#ifdef RESERVE
		/* Reserve: started, with a deadline of its own. The token names it by created. */
		insert(started, 255, POLICY, 0);
#endif
		for (i : 0 .. (N - 1)) { run Caller(i) }
#if SWEEPS > 0
		run Sweeper();
#endif
#if RESOLVES > 0
		run Operator(1);
		run Operator(2);
#endif
		i = 0
	}
#ifdef NO_DOUBT
	_nr_pr == 1;
	rule(ran_once, key[0].effects == 1 && rec.st == completed)
#endif
}
