package deliver

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/semelhttp"
)

// effect says what happens to a message after an answer.
type effect uint8

const (
	// doubt: nobody knows whether the message took effect. The policy decides.
	doubt effect = iota
	// done: the message is finished.
	done
	// failed: the answer is final. The message goes to the dead letters.
	failed
	// later: nothing happened, and the same request makes sense later. The message
	// comes again as often as that takes.
	later
	// refused: nothing happened, and another request is asked for. The message comes
	// again a few times, and then goes to the dead letters.
	refused
)

// verdict is what judge says about an answer.
type verdict struct {
	effect effect
	reason string // for people
	// after is the pause that the service asks for; zero: it names none.
	after time.Duration
	// pause stops all messages for that time, because the answer is about the service
	// or about this program, and not about the message.
	pause bool
	// tenant: the pause is for the messages of one tenant, if messages have tenants.
	tenant bool
}

// Statuses say what some answers mean, besides the table of semelhttp.Judge.
type Statuses struct {
	Done     []int // the message is finished
	Final    []int // it goes to the dead letters
	NoEffect []int // nothing was done
}

// judge is the table of docs/deliver.md. It has no side effects. It calls
// semelhttp.Judge for all answers that a message does not need a row of its own for.
func (s *Statuses) judge(a semelhttp.Answer) verdict {
	after, hasAfter := retryAfter(a.Header.Get("Retry-After"))
	v := verdict{after: after}
	v.effect, v.reason = s.effect(&a, hasAfter)
	switch a.Status {
	case 0:
		v.pause = v.effect == later
	case http.StatusTooManyRequests: // it is about the one who asks; 503 is about the service
		v.pause, v.tenant = v.effect == later || v.effect == doubt, true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		v.pause = v.effect == later || v.effect == doubt
	default:
		v.pause = v.effect == later && isAboutSender(a.Status)
	}
	return v
}

func (s *Statuses) effect(a *semelhttp.Answer, hasAfter bool) (effect, string) {
	v := semelhttp.Judge(*a)
	whole := a.Status != 0 && !a.Broken
	refusal := upstream.IsRefusal(a.Status, a.Header)
	switch result := a.Header.Get(upstream.ResultHeader); {
	case whole && result == upstream.ResultFinal:
		return resultOf(a.Status), "the service says that it is final"
	case whole && result == upstream.ResultNoEffect:
		return later, "the service says that nothing was done"
	case whole && !refusal && slices.Contains(s.Done, a.Status):
		return done, "it is one of --done-statuses"
	case whole && !refusal && slices.Contains(s.Final, a.Status):
		return failed, "it is one of --final-statuses"
	case whole && slices.Contains(s.NoEffect, a.Status) && hasAfter:
		return later, "it is one of --no-effect-statuses"
	case whole && slices.Contains(s.NoEffect, a.Status):
		return refused, "it is one of --no-effect-statuses"
	case whole && a.Header.Get("Semel-Outcome") == "unknown": // of a semel proxy, or of semelhttp
		return doubt, "the service does not know whether it was done"
	case whole && a.Status == http.StatusServiceUnavailable && hasAfter:
		return later, "it asks for the same request later"
	}
	switch v.Effect {
	case semelhttp.Kept:
		return resultOf(a.Status), v.Reason
	case semelhttp.NothingDone:
		if v.Again || a.Status == http.StatusLocked || a.Status == http.StatusMisdirectedRequest || isAboutSender(a.Status) {
			return later, v.Reason
		}
		return refused, v.Reason
	case semelhttp.Doubt:
	}
	return doubt, v.Reason
}

// resultOf is the effect of an answer that is the result.
func resultOf(status int) effect {
	if status >= http.StatusBadRequest {
		return failed
	}
	return done
}

// isAboutSender reports whether a status is about this program's address of the service
// or its credentials, which are the same for all messages.
func isAboutSender(status int) bool {
	switch status {
	case http.StatusMultipleChoices, http.StatusMovedPermanently, http.StatusUseProxy, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusNetworkAuthenticationRequired:
		return true
	}
	return false
}

// retryAfter reads the value of Retry-After: a number of seconds or a date.
func retryAfter(v string) (time.Duration, bool) {
	if v == "" { // most answers
		return 0, false
	}
	if n, err := strconv.ParseUint(v, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) { // out of range: n is the largest
		return min(time.Duration(n)*time.Second, longestAfter), true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return min(max(0, time.Until(t)), longestAfter), true
}

// longestAfter is the longest pause between two tries of a message.
const longestAfter = 12 * time.Hour
