/* A step of a call: its effect, and its record in the record of the call. One
   key, N callers, one step. Anybody can freeze between two steps of the model.

   The record has a state, a fence and the step, if it is recorded. A caller
   claims, reads whether the step is recorded, has the step's effect, records
   the step, and settles. */

#include "rules.pml"

#define RETRY 0
#define PARK 1
#ifndef POLICY
#define POLICY RETRY
#endif
#ifndef ROUNDS
#define ROUNDS 2 /* claims that a caller tries */
#endif
#ifndef LAPSES
#define LAPSES 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef LOSSES
#define LOSSES 1 /* the answer to a step's record is lost, and it is sent again */
#endif
#ifndef ERRORS
#define ERRORS 2 /* a handler returns an error after its step */
#endif
#ifndef EXPIRIES
#define EXPIRIES 1 /* lives of the key that follow the first */
#endif
#ifndef RESOLVES
#define RESOLVES 2 /* an operator says that a parked call did not happen */
#endif
#define LIVES (EXPIRIES + 1)

#define R_not_again 1    /* after a step is recorded, no later owner has its effect again in that life */
#define R_true_replay 2  /* a replayed step has had its effect in this life */
#define R_at_most_once 3 /* park: one effect of the step in a life at most */
#define R_only_owner 4   /* only the owner of the claim records a step */
hidden byte not_again, true_replay, at_most_once, only_owner;

#define M_took_over 1
#define M_replayed 2
#define M_refused 3
#define M_began_anew 4
#define M_in_doubt 5
#define M_parked 6
#define M_resolved 7
#define M_sent_again 8

#define absent 0
#define released 1
#define processing 2
#define completed 3
#define unknown 4

byte state, fence, life;
bool step; /* it is recorded */

byte lapses = LAPSES, crashes = CRASHES, losses = LOSSES, errors = ERRORS, expiries = EXPIRIES, resolves = RESOLVES;

/* What the rules speak of. */
byte effects[LIVES], recorder[LIVES]; /* the fence that recorded the step; 0: nobody */
byte inside; /* callers whose step may still have its effect */
byte turn;

inline claim_as_owner() { fence++; mine = fence; state = processing; own = life }

/* An operator's "no" must be true, and stay so: nobody is inside, and no effect
   is there that is not recorded. */
#ifdef BUG_NO_DESPITE_A_STEP_IN_DOUBT
#define may_say_no (inside == 0)
#else
#define may_say_no (inside == 0 && (effects[life] == 0 || step))
#endif

proctype Caller(byte me) {
	byte mine, own, rounds = ROUNDS;
	bool entered;

	atomic { turn == me -> turn++ }

again:
	atomic {
		if
		:: rounds == 0 -> goto done
		:: else -> rounds--
		fi;
		if
		:: state == absent || state == released -> claim_as_owner()
		:: state == processing && lapses > 0 && POLICY == RETRY -> lapses--; claim_as_owner(); mark(took_over);
#ifdef BUG_TAKEOVER_FORGETS_STEPS
			step = false
#endif
		:: state == processing && lapses > 0 && POLICY == PARK -> lapses--; fence++; state = unknown; mark(parked); goto again
		:: state == processing -> goto again
		:: state == completed && expiries > 0 -> expiries--; life++; claim_as_owner(); mark(began_anew);
#ifndef BUG_STEPS_OUTLIVE_THEIR_RECORD
			step = false
#endif
		:: state == completed -> goto done
		:: state == unknown && resolves > 0 && may_say_no -> resolves--; fence++; state = released; mark(resolved); goto again
		:: state == unknown -> goto again
		fi
	}

#ifdef BUG_STEPS_EXPIRE_BY_THEMSELVES
	atomic { if :: step = false :: true fi }
#endif

	atomic { /* read the steps, with the lease */
		if
		:: mine != fence -> mark(refused); goto again
		:: mine == fence && step -> mark(replayed); rule(true_replay, effects[own] > 0); goto settle
		:: mine == fence && !step -> inside++; entered = true
		fi
	}

	atomic { /* the effect: of a frozen caller, too */
		if
		:: crashes > 0 -> crashes--; inside--; entered = false; goto done
		:: true
		fi;
		if :: effects[own] > 0 -> mark(in_doubt) :: else fi;
		rule(not_again, recorder[own] == 0 || mine < recorder[own]);
		effects[own]++;
		rule(at_most_once, POLICY == RETRY || effects[own] <= 1);
		inside--; entered = false
	}

record:
	atomic {
		if
		:: crashes > 0 -> crashes--; goto done
		:: true
		fi;
		if
#ifdef BUG_STEP_RECORDED_WITHOUT_LEASE
		:: state != absent
#else
		:: mine == fence && state == processing
#endif
			-> rule(only_owner, mine == fence && state == processing);
			step = true;
			if :: recorder[own] == 0 -> recorder[own] = mine :: else fi;
			if
			:: losses > 0 -> losses--; mark(sent_again); goto record
			:: true
			fi
		:: else -> mark(refused); goto again
		fi
	}

settle:
	atomic {
		if
		:: crashes > 0 -> crashes--; goto done
		:: true
		fi;
		if
		:: mine == fence && state == processing ->
			if
			:: errors > 0 && POLICY == RETRY -> errors--; state = released
			:: errors > 0 && POLICY == PARK -> errors--; state = unknown
			:: state = completed
			fi
		:: else -> mark(refused)
		fi;
		goto again
	}

done:
	atomic { mine = 0; own = 0; entered = false }
}

init {
	byte i;
	atomic {
		for (i : 0 .. (N - 1)) { run Caller(i) }
		i = 0
	}
}
