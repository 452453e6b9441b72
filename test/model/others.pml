/* Whoever changes records and is no call: sweeps and operators. */

#if SWEEPS > 0
/* SweepOnce, over and over. */
proctype Sweeper() {
	byte steps = SWEEPS;
	byte count;
	Seen seen;
	mtype act = absent, next = absent;
	bit pol; bit keep; bool anew;

	do
	:: steps > 0 ->
		atomic {
			steps--;
			clock();
			act = absent;
			if
#ifdef BUG_SWEEPS_LAPSED
			:: rec.over -> remove()
#endif
#ifdef BUG_SWEEP_DOES_NOT_RECHECK
			:: rec.expired -> act = replay
#else
			:: rec.expired -> remove(); mark(swept)
#endif
			:: !rec.expired && rec.over ->
				decide(rec.policy, 0, act, pol, anew);
				next = (act == do_park -> unknown : released);
				seen.st = rec.st; seen.fence = rec.fence; seen.owner = rec.owner; count = rec.attempt; keep = rec.policy
			:: else
			fi
		}
		if
#ifdef BUG_SWEEP_DOES_NOT_RECHECK
		:: act == replay && rec.st != absent -> atomic { remove() }
#endif
		:: act == execute || act == take_over || act == do_park ->
			atomic {
				if
				:: same(seen) -> replace(next, 254, keep, count, 0, false); mark(recovered)
				:: else
				fi;
				seen.st = 0; seen.fence = 0; seen.owner = 0; count = 0; keep = 0; pol = 0; next = absent; act = absent
			}
		:: else
		fi
	:: else -> break
	od
}
#endif

#if RESOLVES > 0
/* Guard.Resolve: an operator sees a parked record, and later says what became
   of it. Who never sees one waits for ever, which is no deadlock. */
proctype Operator(byte number) {
	Seen seen;
	mtype verdict = absent;
	byte told;

end_nothing_is_parked:
	atomic {
		rec.st == unknown;
		seen.st = rec.st; seen.fence = rec.fence; seen.owner = rec.owner;
		if
		:: key[gen].effects > 0 -> verdict = completed; told = key[gen].did
		:: can_say_no -> verdict = released
		:: true -> verdict = failed; told = 250 + number
		fi
	}
	atomic {
		if
		:: same(seen) -> replace(verdict, 250 + number, PARK, 0, told, false); mark(resolved)
		:: else -> mark(resolve_refused)
		fi;
		seen.st = 0; seen.fence = 0; seen.owner = 0; verdict = absent; told = 0
	}
}
#endif
