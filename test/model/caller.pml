/* A call: visit.admit, Guard.execute and Guard.settle. */

#ifndef POLICY
#define POLICY RETRY
#endif
#ifdef RESERVE
#define TOKEN (me > 0 -> 1 : 0) /* caller 0 is a plain call; the others have each been given the token */
#else
#define TOKEN 0
#endif

/* A fresh owner for each proposal of each call. */
#ifdef BUG_OWNER_OF_PROCESS
#define fresh() skip
#define TOK 1
#else
#define fresh() round++
#define TOK (1 + me + N * (round - 1))
#endif
#define OTHER (100 + TOK) /* another outcome of the same run */

/* Callers that are alike begin in order: any other order is the same with
   other names. */
#ifdef RESERVE
#define my_turn true
#else
#define my_turn (turn == me)
#endif
byte turn;

typedef Seen { mtype st; byte fence; byte owner };

/* A run of a handler that may still have its effect, from its claim on. */
inline end_run() {
	if :: counted -> counted = false; key[mygen].pending-- :: else fi
}
inline begin_run() {
	end_run(); /* of a claim that was sent again and found its record gone */
	counted = true; mygen = gen; key[mygen].pending++;
	if :: rec.policy == PARK -> key[mygen].strict = true :: else fi
}

/* Somebody is told an outcome as the one that is recorded. */
inline tell(g, result) { rule(told_alike, key[g].first == result) }

proctype Caller(byte me) {
	byte round; byte fence; byte tries; byte mygen; byte result;
	byte seentries; /* Attempt that was seen */
	Seen seen;
	mtype act = absent, want = absent;
	bit pol; bit policy = POLICY;
	bool anew, won, ok, counted, again;
	bool reconciling, reconciled; /* the run is a reconciler's; one was asked */

	atomic {
		my_turn -> turn++;
#ifdef MIXED
		if :: policy = RETRY :: policy = PARK fi;
#endif
		fresh()
	}
	if :: TOKEN > 0 -> goto look :: else fi;

claim:
	atomic { /* insert if there is none, else what is there */
		clock();
		if
		:: rec.st == absent -> insert(processing, TOK, policy, 1); begin_run()
		:: else
		fi;
		won = mine(TOK, processing);
		rule(own_claim_won, won || !(rec.owner == TOK && rec.st == processing));
		if
		:: losses > 0 -> losses--; won = false; again = true; /* sent again, with the same owner */
#ifdef BUG_RESENT_WITH_OTHER_OWNER
			fresh();
#endif
			goto claim
		:: true
		fi;
		if
		:: won ->
			if :: again -> mark(own_claim_found) :: else fi;
			again = false; fence = rec.fence; tries = 1; pol = policy; goto running
		:: else -> end_run(); again = false
		fi
	}

look:
	atomic { /* Get, or what a lost Claim or Swap has shown; then Decide */
		clock();
		if
		:: rec.st == absent && TOKEN > 0 -> mark(token_expired); goto done
		:: rec.st == absent && TOKEN == 0 && round < ROUNDS -> fresh(); goto claim
		:: rec.st == absent && TOKEN == 0 && round >= ROUNDS -> goto done
		:: else
		fi;
		decide(policy, TOKEN, act, pol, anew);
		seen.st = rec.st; seen.fence = rec.fence; seen.owner = rec.owner; seentries = rec.attempt;
		want = processing;
		if
		:: act == replay -> mark(replayed); tell(gen, rec.outcome); goto done
		:: act == in_progress -> mark(in_progress); goto done
		:: act == token_expired -> mark(token_expired); goto done
		:: act == is_parked ->
#ifdef RECONCILE
			if
			:: !reconciled -> reconciled = true; reconciling = true; pol = PARK
			:: else -> mark(refused_parked); goto done
			fi
#else
			mark(refused_parked); goto done
#endif
		:: act == do_park -> want = unknown; pol = PARK
		:: act == execute || act == take_over ->
			seentries = (anew -> 1 : seentries + 1)
		fi;
		if :: round >= ROUNDS -> goto done :: else -> fresh() fi
	}

swap:
	atomic { /* compare-and-swap on all that was seen */
		if
		:: same(seen) ->
			replace(want, TOK, pol, seentries, 0, anew);
			if :: want == processing && !reconciling -> begin_run() :: else fi
		:: else
		fi;
		won = mine(TOK, want);
		rule(own_claim_won, won || !(rec.owner == TOK && rec.st == want));
		if
		:: losses > 0 -> losses--; won = false; goto swap
		:: true
		fi;
		seen.st = 0; seen.fence = 0; seen.owner = 0; want = absent;
		if
		:: won && rec.st == unknown -> mark(parked); goto look
		:: won && rec.st == processing ->
			fence = rec.fence; tries = seentries;
			if
			:: act == take_over -> mark(took_over)
			:: act == execute && TOKEN > 0 -> mark(redeemed); rule(token_once, rec.created == TOKEN)
			:: anew -> mark(began_anew)
			:: else
			fi;
#ifdef RECONCILE
			if :: reconciling -> goto asking :: else fi;
#endif
			goto running
		:: else -> mark(swap_lost); reconciling = false; end_run(); goto look
		fi
	}

running:
	atomic { /* the handler, up to and with its effect; or it never starts */
		act = absent; anew = false; won = false; want = completed; result = TOK; seentries = 0;
		if
		:: crashes > 0 -> crashes--; end_run(); goto done
		:: leaves > 0 -> leaves--; end_run(); want = released; tries--; mark(gave_back)
		:: errors > 0 -> errors--; end_run(); want = released; tries-- /* NoEffect */
		:: errors > 0 -> errors--; end_run(); want = (pol == PARK -> unknown : released) /* a plain error: doubt */
		:: true ->
#ifdef DERIVED
			/* downstream knows the derived key, and does it once for all attempts */
			if :: key[mygen].effects == 0 -> key[mygen].effects++ :: else fi;
#else
			key[mygen].effects++;
#endif
			key[mygen].did = TOK;
			end_run();
#ifdef EXACTLY_ONCE
			rule(at_most_once, key[mygen].effects <= 1);
#else
			rule(at_most_once, key[mygen].effects <= 1 || !key[mygen].strict);
#endif
			if :: key[mygen].effects == 2 -> mark(ran_twice) :: else fi;
			rule(doubt_kept, !key[mygen].strict || mygen < gen || (rec.st != absent && rec.st != released && rec.st != started));
			if
			:: errors > 0 -> errors--; want = (pol == PARK -> unknown : released); mark(attempt_failed)
			:: errors > 0 -> errors--; want = failed /* Final */
			:: true
			fi
		fi
	}

settling:
	atomic { /* again and again, until the store answers */
		if
		:: crashes > 0 -> crashes--; goto done
		:: true
		fi;
		if :: terminal(want) :: else -> result = 0 fi;
		settle(TOK, fence, want, tries, result, ok);
		if
		:: losses > 0 -> losses--; ok = false;
			if /* Complete got no answer, and the handler returned something else */
			:: terminal(want) -> result = OTHER
			:: true
			fi;
			goto settling
		:: true
		fi;
		if
		:: ok && terminal(want) && !reconciling -> tell(mygen, result)
		:: ok && !terminal(want)
		:: ok && terminal(want) && reconciling
		:: !ok && result == OTHER && rec.owner == TOK -> mark(other_outcome_refused)
		:: !ok && !(result == OTHER && rec.owner == TOK) -> mark(zombie_refused)
		fi;
		if :: reconciling -> reconciling = false; goto look :: else -> goto done fi
	}

#ifdef RECONCILE
asking:
	atomic { /* the reconciler looks downstream, under a lease of its own */
		act = absent; anew = false; won = false; seentries = 0; want = unknown; result = 0;
		if
		:: crashes > 0 -> crashes--; goto done
#ifdef BUG_UNDO_OF_RECONCILE_RELEASES
		:: leaves > 0 -> leaves--; want = released
#else
		:: leaves > 0 -> leaves-- /* goes back to unknown: nobody has said no */
#endif
		:: key[gen].effects > 0 -> want = completed; result = key[gen].did; mark(said_it_happened)
		:: can_say_no -> want = released; mark(said_it_did_not)
		:: true -> mark(undecided)
		fi;
		goto settling
	}
#endif

done:
	atomic { /* what is over is forgotten, so that equal states are one */
		round = 0; fence = 0; tries = 0; mygen = 0; result = 0; seentries = 0; seen.st = 0; seen.fence = 0; seen.owner = 0;
		act = 0; want = 0; pol = 0; policy = 0; anew = false; won = false; ok = false;
		counted = false; again = false; reconciling = false; reconciled = false
	}
}
