/* A store with a synchronous standby: it acknowledges a change after the standby has
   it. The replication can be cut, and a fail-over takes back what the standby does not
   have. One key, N callers. Anybody can freeze between two steps of the model. */

#include "rules.pml"

#define RETRY 0
#define PARK 1
#ifndef POLICY
#define POLICY RETRY
#endif
#ifndef ROUNDS
#define ROUNDS 2 /* claims that a caller sends */
#endif
#ifndef LAPSES
#define LAPSES 1
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 2 /* a caller does not wait for the standby any longer */
#endif

#define R_told_kept 1    /* after a caller was told the outcome, the handler does not run again */
#define R_at_most_once 2 /* park: one effect at most */
#define R_one_inside 3   /* without a lapse no two handlers run at once */
hidden byte told_kept, at_most_once, one_inside;

#define M_took_over 1
#define M_parked 2
#define M_own_claim_found 3
#define M_replayed 4
#define M_lost 5
#define M_doubt_found 6
#define M_refused 7
#define M_settled_again 8

#define absent 0
#define processing 1
#define completed 2
#define unknown 3

byte state, owner;     /* of the primary */
byte kept, keptowner;  /* of the standby */
bool cut;
byte cuts = CUTS, failovers = FAILOVERS, lapses = LAPSES, giveups = GIVE_UPS;
byte claims;           /* each claim has an owner of its own */

/* What the rules speak of. */
byte effects, inside;
bool told;
byte turn;

#ifdef BUG_UNDO_COMES_LATE
byte undo; /* the owner of a claim that is taken back, at any time later */
#endif

inline replicate() {
	if :: !cut -> kept = state; keptowner = owner :: else fi
}

#ifdef BUG_ACKNOWLEDGES_EARLY
#define durable true
#else
#define durable (kept == state && keptowner == owner)
#endif

/* Whether a look at the record is answered. */
#ifdef BUG_PLAIN_READ_CONFIRMS
#define confirmed true
#else
#define confirmed durable
#endif

proctype Caller(byte me) {
	byte mine, rounds = ROUNDS;

	atomic { turn == me -> turn++ }

again:
	atomic { /* Claim: the same again, if its answer did not come */
		if
		:: rounds == 0 -> goto done
		:: else -> rounds--
		fi;
		if
		:: state == absent -> claims++; mine = claims; owner = mine; state = processing; replicate()
		:: state == processing && owner == mine -> mark(own_claim_found)
		:: state == processing && owner != mine && lapses > 0 && POLICY == RETRY ->
			lapses--; claims++; mine = claims; owner = mine; replicate(); mark(took_over)
		:: state == processing && owner != mine && lapses > 0 && POLICY == PARK ->
			lapses--; claims++; owner = claims; state = unknown; replicate(); mark(parked); goto again
		:: state == processing && owner != mine -> goto again
		:: state == unknown -> goto done
		:: state == completed -> goto replay
		fi
	}

	atomic { /* its answer */
		if
		:: owner == mine && state == processing && durable -> goto enter
		:: giveups > 0 -> giveups--;
#ifdef BUG_UNDO_COMES_LATE
			if :: undo == 0 -> undo = mine :: else fi;
#endif
			goto again
		:: owner != mine || state != processing -> goto again
		fi
	}

enter:
	atomic {
		rule(told_kept, !told || owner != mine); /* a frozen owner that begins late is no new run */
		rule(one_inside, LAPSES > 0 || inside == 0);
		inside++
	}
	atomic { effects++; rule(at_most_once, POLICY == RETRY || effects <= 1) }
	atomic { inside-- }
settle:
	atomic { /* Settle; it is sent again if the fail-over has taken it back */
		if
		:: owner == mine && state == processing -> state = completed; replicate()
		:: else -> mark(refused); mine = 0; goto again
		fi
	}
	atomic { /* its answer */
		if
		:: owner == mine && state == completed && durable -> told = true; goto done
		:: giveups > 0 -> giveups--; mark(doubt_found); mine = 0; goto again /* another call */
		:: owner == mine && state == processing -> mark(settled_again); goto settle
		:: owner != mine -> mine = 0; goto again
		fi
	}

replay:
	atomic {
		if
		:: state == completed && confirmed -> told = true; mark(replayed); goto done
		:: giveups > 0 -> giveups--; goto again
		:: state != completed -> goto again
		fi
	}

done:
	atomic { mine = 0 }
}

proctype Replication() {
end:
	do
	:: atomic { !cut && cuts > 0 -> cuts--; cut = true }
	:: atomic { cut -> cut = false; kept = state; keptowner = owner }
	:: atomic { cut && failovers > 0 ->
			failovers--;
			if :: kept != state || keptowner != owner -> mark(lost) :: else fi;
			state = kept; owner = keptowner; cut = false
		}
#ifdef BUG_UNDO_COMES_LATE
	:: atomic { undo > 0 && owner == undo && state == processing -> undo = 0; state = absent; owner = 0; replicate() }
#endif
	od
}

init {
	byte i;
	atomic {
		run Replication();
		for (i : 0 .. (N - 1)) { run Caller(i) }
		i = 0
	}
}
