/* store.Decide: what a call has to do about the record as it is now. Left out:
   payloads (another one is refused in every state) and the limit of attempts. */

mtype = { execute, take_over, replay, in_progress, do_park, is_parked, token_expired };

#ifdef BUG_POLICY_OF_THE_CALL
#define stricter(call) call
#else
#define stricter(call) (rec.policy > call -> rec.policy : call)
#endif

/* A token's bearer is tied to the life of the key that was reserved: token is
   its created, 0 for a plain call. */
inline decide(call, token, act, pol, anew) {
	pol = stricter(call); anew = false;
	if
#ifndef BUG_TOKEN_OF_ANY_LIFE
	:: token > 0 && (rec.created != token || rec.expired) -> act = token_expired
	:: token == 0 && rec.expired -> act = execute; anew = true; pol = call
#else
	:: rec.expired -> act = execute; anew = true; pol = call
#endif
	:: else ->
		if
		:: terminal(rec.st) -> act = replay
		:: rec.st == unknown -> act = is_parked
		:: rec.st == started && token == 0 && !rec.over -> act = in_progress
		:: rec.st == started && (token > 0 || rec.over) ->
			act = (pol == PARK && rec.policy == RETRY && rec.attempt > 0 -> do_park : execute)
		:: rec.st == released ->
#ifdef BUG_FAILED_ATTEMPT_FORGOTTEN
			act = execute
#else
			act = (pol == PARK && rec.policy == RETRY && rec.attempt > 0 -> do_park : execute)
#endif
		:: rec.st == processing && !rec.over -> act = in_progress
		:: rec.st == processing && rec.over ->
#ifdef BUG_PARK_RERUNS
			act = take_over
#else
			act = (pol == PARK -> do_park : take_over)
#endif
		fi
	fi
}
