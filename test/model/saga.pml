/* A saga: step 0 in another system, an event that is awaited, step 1, which puts a
   message into an outbox in the transaction that records it, and perhaps a refusal.
   One saga, two workers, a caller that starts it, one that sends the event, and with
   -DPUBLISHES a publisher. Anybody can freeze between two steps of the model.

   A worker finds the saga by its timer, claims it, reads what is recorded, and goes on
   from there. Time is left out: a timer that is there is due. */

#include "rules.pml"

#ifndef ROUNDS
#define ROUNDS 2 /* timers that a worker finds */
#endif
#ifndef LAPSES
#define LAPSES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef REFUSED
#define REFUSED 1 /* 1: the saga is refused after its steps */
#endif
#ifndef LATES
#define LATES 1 /* a run finds that the deadline has passed */
#endif

#define R_order 1        /* compensations run in the reverse order of start */
#define R_back_first 2   /* no step has its effect after a compensation */
#define R_exact 3        /* an ended saga is done, or exactly undone */
#define R_found 4        /* a saga that has begun and not ended has a timer */
#define R_published 5    /* a message is deleted after it was sent */
#define R_true_message 6 /* a message that is sent is of a step that is recorded */
hidden byte order, back_first, exact, found, published, true_message;

#define M_took_over 1
#define M_turned_back 2
#define M_succeeded 3
#define M_undone 4
#define M_late 5
#define M_refused 6
#define M_event_refused 7
#define M_sent_again 8
#define M_waited 9
#define M_undo_failed 10

#define absent 0
#define released 1
#define processing 2
#define completed 3
#define failed 4

byte state, fence;                /* the record */
bool input, done[2], undone[2], back, event;
byte timer, versions;             /* its version; 0: there is none */
bool row;                         /* of the outbox */
bool effect[2], undo[2], sent;    /* in other systems, which recognise keys */
byte highest;                     /* fence that came to the other systems */
byte lapses = LAPSES, crashes = CRASHES, lates = LATES;
byte turn;

#define ended (state == completed || state == failed)
#define mine_is_valid (mine == fence && state == processing)
#define check_timer rule(found, !input || ended || timer != 0)

#ifdef BUG_OTHER_SYSTEMS_IGNORE_FENCES
#define fenced true
#else
#define fenced (mine >= highest)
#endif

inline may_crash() { if :: crashes > 0 -> crashes--; goto end_again :: true fi }
inline set_timer() { versions++; timer = versions }

proctype Worker(byte me) {
	byte mine, version, rounds = ROUNDS;
	bool d0, d1, e, b, u0, u1;

	atomic { turn == me -> turn++ }

end_again:
	atomic { /* the timer is due; it is made due again later, so that it is found again */
		mine = 0; version = 0; d0 = 0; d1 = 0; e = 0; b = 0; u0 = 0; u1 = 0;
		if
		:: rounds > 0 && timer != 0 -> rounds--; set_timer(); version = timer
		:: rounds == 0 || ended -> goto finish
		fi
	}
	atomic { /* claim, and read what is recorded */
		if
		:: state == released -> fence++; mine = fence; state = processing
		:: state == processing && lapses > 0 -> lapses--; fence++; mine = fence; mark(took_over)
		:: else -> if :: ended -> goto drop :: else -> goto end_again fi
		fi;
		d0 = done[0]; d1 = done[1]; e = event; b = back; u0 = undone[0]; u1 = undone[1];
		if
		:: !b && lates > 0 -> lates--; mark(late); goto turn_back
		:: true
		fi;
		if
		:: b -> goto compensate
		:: !b && !d0 -> goto step0
		:: !b && d0 -> goto wait
		fi
	}

step0:
	atomic {
		may_crash();
		if :: fenced -> highest = (mine > highest -> mine : highest);
			rule(back_first, !undo[0] && !undo[1]);
			effect[0] = true
		:: else -> mark(refused); goto end_again
		fi
	}
	atomic {
		may_crash();
		if :: mine_is_valid -> done[0] = true; d0 = true :: else -> mark(refused); goto end_again fi
	}

wait:
	atomic {
		if
		:: !e && mine_is_valid -> state = released; mark(waited); goto keep
		:: !e && !mine_is_valid -> goto end_again
		:: e && d1 -> goto finished
		:: e && !d1
		fi
	}

	atomic { /* step 1: its message and its record commit together */
		may_crash();
#ifdef BUG_MESSAGE_BEFORE_COMMIT
		row = true
	}
	atomic {
		may_crash();
#endif
		if
		:: mine_is_valid ->
			rule(back_first, !undo[0] && !undo[1]);
			effect[1] = true; done[1] = true; d1 = true; row = true
		:: else -> mark(refused); goto end_again
		fi
	}

finished:
	atomic {
		if
		:: REFUSED == 1 -> goto turn_back
		:: REFUSED == 0 && mine_is_valid -> goto settle_done
		:: REFUSED == 0 && !mine_is_valid -> mark(refused); goto end_again
		fi
	}

turn_back:
#ifndef BUG_BACK_IS_NOT_RECORDED
	atomic {
		may_crash();
		if :: mine_is_valid -> back = true; mark(turned_back) :: else -> mark(refused); goto end_again fi
	}
#endif

compensate:
#ifdef BUG_ORDER_OF_START
	atomic { if :: !u0 -> goto undo0 :: else -> goto undo1 fi }
#endif
undo1: /* step 1 was reached if step 0 is recorded and the event has come */
	atomic {
		may_crash();
		if
#ifdef BUG_DOUBT_IS_NOT_UNDONE
		:: d0 && e && d1 && !u1 ->
#else
		:: d0 && e && !u1 ->
#endif
			if :: fenced -> highest = (mine > highest -> mine : highest);
				rule(order, !undo[0]); undo[1] = true
			:: else -> mark(refused); goto end_again
			fi
		:: else -> goto undo0
		fi
	}
	atomic {
		may_crash();
		if :: mine_is_valid -> undone[1] = true; u1 = true :: else -> mark(refused); goto end_again fi
	}

undo0:
	atomic {
		may_crash();
		if
#ifdef BUG_DOUBT_IS_NOT_UNDONE
		:: u0 || !d0 -> goto settle_back
		:: !u0 && d0 ->
#else
		:: u0 -> goto settle_back
		:: !u0 ->
#endif
			if :: fenced -> highest = (mine > highest -> mine : highest); undo[0] = true
			:: else -> mark(refused); goto end_again
			fi
		fi
	}
	atomic {
		may_crash();
		if
		:: mine_is_valid && crashes > 0 -> crashes--; state = released; mark(undo_failed); goto keep
		:: mine_is_valid -> undone[0] = true; u0 = true
		:: else -> mark(refused); goto end_again
		fi;
#ifdef BUG_ORDER_OF_START
		if :: !u1 && d0 && e -> goto undo1 :: else fi
#endif
	}

settle_back:
	atomic {
		may_crash();
		if
		:: mine_is_valid ->
#ifdef BUG_TIMER_DROPPED_BEFORE_THE_END
			timer = 0; check_timer;
#endif
			state = failed; mark(undone);
			rule(exact, (!effect[0] || undo[0]) && (!effect[1] || undo[1]));
			goto drop
		:: else -> mark(refused); goto end_again
		fi
	}

settle_done:
	atomic {
		may_crash();
		if
		:: mine_is_valid -> state = completed; mark(succeeded);
			rule(exact, effect[0] && effect[1] && !undo[0] && !undo[1]);
			goto drop
		:: else -> mark(refused); goto end_again
		fi
	}

keep:
	atomic { may_crash(); if :: timer == version -> set_timer() :: else fi; goto end_again }

drop:
	atomic { if :: timer == version -> timer = 0; check_timer :: else fi; goto end_again }

finish:
	atomic { mine = 0; version = 0; rounds = 0 }
}

proctype Start() {
	atomic { fence++; state = processing }
#ifdef BUG_BEGINS_BEFORE_ITS_TIMER
	atomic { input = true; check_timer }
	atomic { set_timer() }
#else
	atomic { set_timer() }
	atomic { if :: fence == 1 -> input = true; check_timer :: else fi }
#endif
	atomic { if :: fence == 1 && state == processing -> state = released :: else fi }
}

/* Send claims the saga for the time of one write. */
proctype Send() {
end:
	atomic {
		state == released && input ->
#ifndef BUG_EVENT_AFTER_BACK
		if
		:: back -> mark(event_refused)
		:: else -> event = true
		fi;
#else
		event = true;
#endif
		fence++; set_timer()
	}
}

proctype Publisher() {
	byte times = 2;
end:
	do
	:: times > 0 && row ->
		times--;
#ifdef BUG_MESSAGE_DELETED_FIRST
		atomic { row = false; rule(published, sent) };
		if :: crashes > 0 -> crashes-- :: sent = true fi
#else
		atomic {
			if :: sent -> mark(sent_again) :: else fi;
			rule(true_message, done[1]);
			sent = true
		}
		if
		:: atomic { crashes > 0 -> crashes-- } /* the row is still there */
		:: atomic { row = false; rule(published, sent) }
		fi
#endif
	od
}

init {
	byte i;
	atomic {
		run Start(); run Send();
#ifdef PUBLISHES
		run Publisher();
#endif
		for (i : 0 .. 1) { run Worker(i) }
		i = 0
	}
}
