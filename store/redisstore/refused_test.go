package redisstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// A server that refuses writes, because it has too few replicas or cannot save to
// its disk, still answers replays.
func TestReplay_ServerRefusesWrites_Succeeds(t *testing.T) {
	t.Parallel()
	for code, set := range map[string]func(t *testing.T, c redis.UniversalClient, on bool){
		"NOREPLICAS": func(t *testing.T, c redis.UniversalClient, on bool) {
			n := "0"
			if on {
				n = "1"
			}
			if err := c.ConfigSet(t.Context(), "min-replicas-to-write", n).Err(); err != nil {
				t.Fatal(err)
			}
		},
		"MISCONF": func(t *testing.T, c redis.UniversalClient, on bool) {
			if !on {
				if err := c.ConfigSet(t.Context(), "stop-writes-on-bgsave-error", "no").Err(); err != nil {
					t.Fatal(err)
				}
				return
			}
			for k, v := range map[string]string{"save": "3600 1", "dir": "/proc"} { // nobody can write there
				if err := c.ConfigSet(t.Context(), k, v).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.BgSave(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "a save that failed", func() bool {
				info, err := c.Info(t.Context(), "persistence").Result()
				return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
			})
		},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			c := clientAt(t, redistest.Start(t, append([]string{"--enable-protected-configs", "yes"}, redistest.Fast...)...).URL())
			s := openOn(t, c, nil)
			complete(t, s, "kept", "answer")
			r := claim(t, s, "held")
			set(t, c, true)
			refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), code) }
			if f, err := s.Claim(t.Context(), proposal("new")); !refused(err) || f.Won {
				t.Errorf("a new claim: won %v, error %v", f.Won, err)
			}
			if err := s.Settle(t.Context(), r.Lease(), completion("y")); !refused(err) {
				t.Errorf("a settlement: %v", err)
			}
			if f, err := s.Claim(t.Context(), proposal("kept")); err != nil || f.Won || string(f.Record.Outcome.Body) != "answer" {
				t.Errorf("a duplicate: won %v, error %v, %q", f.Won, err, f.Record.Outcome.Body)
			}
			if f, err := s.Claim(t.Context(), proposal("held")); err != nil || f.Won {
				t.Errorf("a duplicate in flight: won %v, error %v", f.Won, err)
			}
			replaysBesideWhatIsRefused(t, s, refused)
			set(t, c, false)
			if _, err := s.Get(t.Context(), testKey("new")); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the refused claim: %v", err)
			}
			if err := s.Settle(t.Context(), r.Lease(), completion("y")); err != nil {
				t.Error(err)
			}
		})
	}
}

// replaysBesideWhatIsRefused claims existing and new keys in one batch.
func replaysBesideWhatIsRefused(t *testing.T, s *Store, refused func(error) bool) {
	t.Helper()
	calls := make([]*call, 4)
	for i := range calls {
		p := proposal([]string{"kept", "new"}[i%2])
		p.Key.Operation += itoa(i / 2)
		if i%2 == 0 {
			p.Key = testKey("kept")
		}
		calls[i], _ = s.claimCall(&p)
	}
	s.send(t.Context(), calls)
	for i, c := range calls {
		if _, there := c.val.(string); there != (i%2 == 0) || (c.err == nil) != there || !there && !refused(s.explain("claim", c.err)) {
			t.Errorf("claim %d of a batch: %v, error %v", i, c.val, c.err)
		}
	}
}
