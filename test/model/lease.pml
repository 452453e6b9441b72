/* The lease, with a clock: one key, N callers, handlers that stop when their
   context ends. An owner counts its lease from before it sent its claim or
   renewal, on its own monotonic clock, and needs no answer to stop; the store
   counts from when the request arrived, and lets another take over after that.
   So no two handlers run at once, whichever replies are late or lost.

   The clocks run at one speed. A handler that is told to stop does, within the
   margin: time does not pass a handler that has to have stopped. */

#include "rules.pml"

#define LEASE 3
#ifndef MARGIN
#define MARGIN 1 /* before the end of the lease the owner tells its handler to stop */
#endif
#define STOPPING 1 /* a handler that is told to stop takes less than this */
#ifndef END
#define END 8 /* the clock stops: the search has an end */
#endif
#ifndef RENEWALS
#define RENEWALS 2 /* of all callers together */
#endif
#ifndef LOSSES
#define LOSSES 1 /* renewals that never arrive */
#endif

#define R_one_inside 1     /* no two handlers at once */
#define R_live_stays 2     /* a lease that is not over is not taken over */
#define R_settled_once 3   /* only who holds the record settles it, and once */
hidden byte one_inside, live_stays, settled_once;

#define M_took_over 1
#define M_renewed 2
#define M_renewal_lost 3
#define M_renewal_refused 4
#define M_stopped 5
#define M_claim_too_late 6
#define M_swap_lost 7
#define M_late_settlement 8
#define M_refused 9
#define M_finished 10
#define M_answer_lost 11
#define M_arrived_late 12

byte now;
byte owner;   /* the record's; 0: there is none. Each claim has another */
byte until;   /* the end of its lease */
bool settled; /* it is completed */

byte renewals = RENEWALS, losses = LOSSES, turn;
byte deadline[N]; /* of the handlers that run; 0: it does not */
byte inside;      /* how many run */

#define allowed(sent) (sent + LEASE - MARGIN)

/* Time goes on until a handler has to have stopped. */
#define must_stop(i) (deadline[i] > 0 && now + 1 >= deadline[i] + STOPPING)
#if N == 3
#define somebody_must_stop (must_stop(0) || must_stop(1) || must_stop(2))
#else
#define somebody_must_stop (must_stop(0) || must_stop(1) || must_stop(2) || must_stop(3))
#endif

proctype Clock() {
	do
	:: atomic { now < END && !settled && !somebody_must_stop -> now++ }
	:: now == END || settled -> break
	od
}

/* Whether a lease that was read has lapsed. */
#ifdef BUG_OWN_CLOCK
#define lapsed (now + 2 >= until) /* by a clock that is ahead of the store's */
#else
#define lapsed (now >= until)
#endif

#ifdef BUG_SWAP_IGNORES_UNTIL
#define same (owner == seen)
#else
#define same (owner == seen && until == seenuntil)
#endif

/* A renewal on its way. */
#define NONE 0
#define SENT 1
#define RENEWED 2 /* the store has moved the end of the lease, and its answer is on its way */
#define REFUSED 3

#define holds (owner == me + 1 && !settled)
#ifdef BUG_ZOMBIE_SETTLES
#define settles true
#else
#define settles (owner == me + 1)
#endif

proctype Caller(byte me) {
	byte sent, seen, seenuntil;
	byte renewal = NONE;

	atomic { turn == me -> turn++; sent = now }
	atomic { /* Claim */
		if
		:: owner == 0 -> owner = me + 1; until = now + LEASE; goto won
		:: owner != 0 && !settled && lapsed -> seen = owner; seenuntil = until
		:: owner != 0 && (settled || !lapsed) -> goto done
		fi
	}
	sent = now;
	atomic { /* Swap */
		if
		:: same && !settled -> rule(live_stays, now >= until); owner = me + 1; until = now + LEASE; mark(took_over); seen = 0; seenuntil = 0
		:: else -> mark(swap_lost); goto done
		fi
	}

won:
	atomic { /* the reply has come; is there time left? */
#ifdef BUG_DEADLINE_FROM_REPLY
		sent = now;
#endif
#ifndef BUG_STARTS_LATE
		if :: now >= allowed(sent) -> mark(claim_too_late); goto done :: else fi;
#endif
		rule(one_inside, inside == 0);
		deadline[me] = allowed(sent); inside++; sent = 0
	}

	do /* the handler runs, and the keeper cares for its lease */
	:: atomic { now >= deadline[me] -> mark(stopped); break } /* whatever is on its way */
	:: atomic { renewal == NONE && renewals > 0 && now < deadline[me] ->
			renewals--; renewal = SENT; sent = now
#if defined(BUG_DEADLINE_BY_SENDING)
			; deadline[me] = allowed(sent)
#elif defined(BUG_DEADLINE_WAITS_FOR_RENEWAL)
			; deadline[me] = 100
#endif
		}
	:: atomic { renewal == SENT -> /* Renew: owner and state are compared, and no clock */
			if
			:: losses > 0 -> losses--; renewal = NONE; sent = 0; mark(renewal_lost)
			:: holds -> until = now + LEASE; renewal = RENEWED
			:: !holds -> renewal = REFUSED
			fi
		}
	:: atomic { renewal == RENEWED ->
			if
			:: losses > 0 -> losses--; mark(answer_lost)
			:: true -> mark(renewed);
#ifdef BUG_DEADLINE_FROM_REPLY
				sent = now;
#endif
				deadline[me] = allowed(sent)
			fi;
			renewal = NONE; sent = 0
		}
	:: atomic { renewal == REFUSED -> mark(renewal_refused); break }
	:: atomic { true -> mark(finished); break }
	od;
	atomic { deadline[me] = 0; inside--; sent = 0 }
	if
	:: atomic { renewal == SENT && holds -> until = now + LEASE; mark(arrived_late) } /* nobody waits for it */
	:: true
	fi;
	renewal = NONE;
	atomic { /* Settle: it may come late, and counts as long as nobody has taken over */
		if
		:: settles ->
			if :: now >= until -> mark(late_settlement) :: else fi;
			rule(settled_once, !settled); settled = true
		:: else -> mark(refused)
		fi
	}
done:
	atomic { sent = 0; seen = 0; seenuntil = 0 }
}

init {
	byte i;
	atomic {
		run Clock();
		for (i : 0 .. (N - 1)) { run Caller(i) }
		i = 0
	}
}
