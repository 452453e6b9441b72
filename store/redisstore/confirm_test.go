package redisstore

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// waitHook calls after for each pipeline that has waited for acknowledgements,
// with how many there were before, and answers that so many have come.
type waitHook struct {
	n     int
	after func(n int) (acked int64)
}

func (h *waitHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *waitHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *waitHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if wait, ok := cmds[len(cmds)-1].(*redis.IntCmd); ok && err == nil {
			wait.SetVal(h.after(h.n))
			h.n++
		}
		return err
	}
}

// The server that a settlement was sent to dies before a replica has it. That
// which takes its place never had it, and has replicas that acknowledge: the
// settlement is not confirmed by them.
func TestSettle_FailOverLosesIt_IsNotConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		end  func() store.Settlement
		meet func(t *testing.T, other *Store, record string, r store.Record)
		want error
	}{
		"the key is gone": {
			func() store.Settlement { return completion("x") },
			func(t *testing.T, other *Store, record string, _ store.Record) {
				other.client.Del(t.Context(), record)
			}, store.ErrLeaseLost,
		},
		"the key is another's": {
			func() store.Settlement { return completion("x") },
			func(t *testing.T, other *Store, record string, _ store.Record) {
				other.client.Del(t.Context(), record)
				claim(t, other, "k")
			}, store.ErrLeaseLost,
		},
		"the doubt is gone": {
			func() store.Settlement { return store.Settlement{State: store.Unknown, Attempt: 1} },
			func(t *testing.T, other *Store, record string, _ store.Record) {
				other.client.Del(t.Context(), record)
			}, store.ErrLeaseLost,
		},
		"it has the claim, and takes the settlement": {
			func() store.Settlement { return completion("x") },
			func(t *testing.T, other *Store, record string, r store.Record) {
				p := proposal("k")
				p.Owner, p.Fingerprint = r.Owner, r.Fingerprint
				other.client.Set(t.Context(), record, encode(t, &p, &r), 0)
			}, nil,
		},
		"a released key is claimed meanwhile": {
			func() store.Settlement { return store.Settlement{State: store.Released, Attempt: 1} },
			func(t *testing.T, other *Store, _ string, _ store.Record) {
				now := get(t, other, "k")
				if f, err := other.Swap(t.Context(), now.Seen(), proposal("k")); err != nil || !f.Won {
					t.Errorf("won %v, error %v", f.Won, err)
				}
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, other := doubtful(t)
			r := claim(t, other, "k")
			record, _ := s.name(r.Key.Digest())
			s.client.AddHook(&waitHook{after: func(n int) int64 {
				if n == 0 {
					c.meet(t, other, record, r)
				}
				return int64(n)
			}})
			if err := s.Settle(t.Context(), r.Lease(), c.end()); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// So it is with a swap that parks a key.
func TestSwap_FailOverLosesParking_IsNotConfirmed(t *testing.T) {
	s, other := doubtful(t)
	r := claim(t, other, "k")
	record, _ := s.name(r.Key.Digest())
	p := proposal("k")
	p.State = store.Unknown
	s.client.AddHook(&waitHook{after: func(n int) int64 {
		if n == 0 {
			other.client.Del(t.Context(), record)
		}
		return int64(n)
	}})
	if f, err := s.Swap(t.Context(), r.Seen(), p); !errors.Is(err, store.ErrNotFound) || f.Won {
		t.Errorf("won %v, error %v, want %v", f.Won, err, store.ErrNotFound)
	}
}
