package redisstore

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// answerHook answers each script by itself.
type answerHook struct {
	waitHook
	val any
	err error
}

func (h *answerHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script, ok := cmd.(*redis.Cmd)
		if !ok {
			return next(ctx, cmd)
		}
		script.SetVal(h.val)
		script.SetErr(h.err)
		return h.err
	}
}

// Whatever a proxy in between makes of an answer, it is no sign of absence, and
// no claim.
func TestAnswer_NotOfAScript_IsError(t *testing.T) {
	s := openNew(t, nil)
	r := complete(t, s, "k", "x")
	h := &answerHook{}
	s.client.AddHook(h)
	for name, a := range map[string]answerHook{
		"nothing":         {err: redis.Nil},
		"no list":         {val: "OK"},
		"an empty list":   {val: []any{}},
		"the clock alone": {val: []any{int64(1)}},
		"no clock":        {val: []any{"1", nil}},
		"a clock of none": {val: []any{int64(0), nil}},
		"too many parts":  {val: []any{int64(1), nil, nil}},
	} {
		h.val, h.err = a.val, a.err
		if f, err := s.Get(t.Context(), r.Key); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: a read: %v, error %v", name, f, err)
		}
		if f, err := s.Claim(t.Context(), proposal("new")); err == nil || f.Won {
			t.Errorf("%s: a claim: won %v, error %v", name, f.Won, err)
		}
		if f, err := s.Swap(t.Context(), r.Seen(), proposal("k")); err == nil || f.Won || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: a swap: won %v, error %v", name, f.Won, err)
		}
		if err := s.Settle(t.Context(), r.Lease(), completion("x")); err == nil || errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("%s: a settlement: %v", name, err)
		}
	}
}

func TestSwap_OtherKeyThanSeen_IsError(t *testing.T) {
	s := openNew(t, nil)
	r := claim(t, s, "k")
	claim(t, s, "another")
	if f, err := s.Swap(t.Context(), r.Seen(), proposal("another")); err == nil || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
}
