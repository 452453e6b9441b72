/* Atomic: claim, the handler's writes and the record are one transaction of
   the store. One key, N callers.

   A transaction that has claimed holds the row: others wait for its end. It
   ends by a commit, by its caller's death, or by the server, which ends one
   that has frozen; but for a commit nothing of it is left. A commit's reply may
   be lost: then the caller calls again. */

#include "rules.pml"

#ifndef CRASHES
#define CRASHES 2 /* a caller dies */
#endif
#ifndef LOSSES
#define LOSSES 2 /* a commit was done, and its reply is lost */
#endif
#ifndef KILLS
#define KILLS 2 /* the server ends a transaction */
#endif
#ifndef ERRORS
#define ERRORS 2 /* a handler returns an error */
#endif

#define R_one_outcome 1  /* no two recorded outcomes */
#define R_told_alike 2   /* whoever is told an outcome is told the recorded one */
#define R_at_most_once 3 /* the effect is committed once at most */
#define R_together 4     /* the effect is there if, and only if, the record is */
#define R_ran_once 5     /* if nobody died and no handler failed, it is done in the end */
hidden byte one_outcome, told_alike, at_most_once, together, ran_once;

#define M_replayed 1
#define M_zombie_refused 2
#define M_rolled_back 3
#define M_commit_lost 4
#define M_waited 5
#define M_handler_failed 6
#define M_failed_for_good 7

byte crashes = CRASHES, losses = LOSSES, kills = KILLS, errors = ERRORS;

/* What is committed. */
byte outcome; /* of the record; 0: there is none */
bool failed;  /* the record is a failure for good: the writes were undone */
byte effects; /* the handler's writes */

byte row; /* whose transaction holds the row; 0: nobody's */
byte turn;
byte first; /* outcome that was ever committed: what the rules speak of */

#define whole (effects == (outcome > 0 && !failed -> 1 : 0))

proctype Caller(byte me) {
	bool kept, found;

	atomic { turn == me -> turn++ }

begin:
	atomic { /* BEGIN and the claim: an insert that waits for who has the row */
		if
		:: row != 0 -> mark(waited)
		:: else
		fi;
#ifdef BUG_ABSENT_ROW_IS_NOT_LOCKED
		true; /* SELECT … FOR UPDATE of a row that is not there locks nothing */
#else
		row == 0;
#endif
		found = (outcome > 0);
		if
		:: found -> mark(replayed); rule(told_alike, outcome == first); found = false; goto done
		:: else -> row = me + 1
		fi
	}

running:
	atomic { /* the handler's writes, seen by nobody yet */
		kept = true;
		if
		:: crashes > 0 -> crashes--;
			if :: row == me + 1 -> row = 0 :: else fi;
			mark(rolled_back); goto done
		:: kills > 0 && row == me + 1 -> kills--; row = 0 /* the caller learns it when it commits */
		:: errors > 0 -> errors--;
			if :: row == me + 1 -> row = 0 :: else fi;
			mark(handler_failed); goto done
		:: errors > 0 -> errors--; kept = false; mark(failed_for_good)
		:: true
		fi;
#ifdef BUG_EFFECT_IS_ITS_OWN_TRANSACTION
		effects++;
		rule(at_most_once, effects <= 1)
#endif
	}

commit:
	atomic {
		if
		:: crashes > 0 -> crashes--;
			if :: row == me + 1 -> row = 0 :: else fi;
			mark(rolled_back); goto done
#ifdef BUG_ABSENT_ROW_IS_NOT_LOCKED
		:: true -> row = 0
#elif defined(BUG_RECORD_IS_ITS_OWN_TRANSACTION)
		:: row == me + 1 -> outcome = me + 1; row = 0;
			if
			:: crashes > 0 -> crashes--; rule(together, whole); goto done
			:: true
			fi
		:: row != me + 1 -> mark(zombie_refused); goto done
#else
		:: row == me + 1 -> row = 0
		:: row != me + 1 -> mark(zombie_refused); goto done
#endif
		fi;
		rule(one_outcome, outcome == 0 || outcome == me + 1);
		outcome = me + 1; failed = !kept;
		if :: first == 0 -> first = outcome :: else fi;
#ifndef BUG_EFFECT_IS_ITS_OWN_TRANSACTION
		if :: kept -> effects++ :: else fi;
#endif
		rule(at_most_once, effects <= 1);
		rule(together, whole);
		if
		:: losses > 0 -> losses--; mark(commit_lost); goto begin
		:: true
		fi;
		rule(told_alike, first == me + 1)
	}

done:
	atomic { kept = false; found = false }
}

init {
	byte i;
	atomic {
		for (i : 0 .. (N - 1)) { run Caller(i) }
		i = 0
	}
	_nr_pr == 1;
	rule(ran_once, whole && (outcome > 0 || CRASHES + KILLS + ERRORS > 0))
}
