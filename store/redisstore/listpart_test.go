package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// failPings fails each read that asks whether a slot has moved.
type failPings struct {
	waitHook
	err error
}

func (h *failPings) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name, _ := cmds[0].Args()[len(cmds[0].Args())-1].(string); strings.HasSuffix(name, pingName) {
			for _, c := range cmds {
				c.SetErr(h.err)
			}
			return h.err
		}
		return next(ctx, cmds)
	}
}

// A slot may have moved during the list, so a list that cannot find that out is not whole.
func TestList_NodeDoesNotSayWhetherSlotMoved_IsError(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	h := &failPings{}
	s.cluster.OnNewNode(func(c *redis.Client) { c.AddHook(h) })
	for i := range 10 {
		claim(t, s, itoa(i))
	}
	for _, says := range []error{errors.New("connection reset"), context.DeadlineExceeded, misled("LOADING it has started again")} {
		h.err = says
		if keys, err := list(t, s, store.Filter{}); len(keys) != 10 || !errors.Is(err, says) {
			t.Errorf("%v: %d records, error %v; want 10 and the error", says, len(keys), err)
		}
	}
	h.err = redis.Nil
	if keys, err := list(t, s, store.Filter{}); len(keys) != 10 || err != nil {
		t.Errorf("no slot has moved: %d records, error %v; want 10 and no error", len(keys), err)
	}
}

// A set that the server refuses in the first round does not hide those that have more.
func TestReadSets_OneSetRefused_OthersAreRead(t *testing.T) {
	s := openNew(t, nil)
	const records = 3 * pageSize
	var calls []*call
	set := s.opt.Prefix + "many"
	for i := range records {
		r := claim(t, s, itoa(i))
		name, _ := s.name(r.Key.Digest())
		calls = append(calls, &call{record: name})
	}
	for _, c := range calls {
		if err := s.client.SAdd(t.Context(), set, c.record).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refused := s.opt.Prefix + "refused" // a string, and no set
	if err := s.client.Set(t.Context(), refused, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	_, err := s.readSets(t.Context(), []string{refused, set}, func(calls []*call) (bool, error) {
		for _, c := range calls {
			found[c.record] = true
		}
		return true, nil
	})
	if len(found) != records || !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("%d records, error %v; want %d and WRONGTYPE", len(found), err, records)
	}
}

// Records that the server refuses to read do not hide the others.
func TestList_SomeRecordsRefused_OthersAreListed(t *testing.T) {
	s := openNew(t, nil)
	const records = 3 * pageSize
	var want []string
	for i := range records {
		park(t, s, itoa(i))
		if i%10 > 0 {
			want = append(want, itoa(i))
			continue
		}
		record, _ := s.name(testKey(itoa(i)).Digest()) // each page has some
		if err := s.client.Del(t.Context(), record).Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.client.LPush(t.Context(), record, "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	for name, f := range map[string]store.Filter{"all": {}, "in doubt": {States: []store.State{store.Unknown}}} {
		keys, err := list(t, s, f)
		if slices.Sort(keys); !slices.Equal(keys, want) || !redis.HasErrorPrefix(err, "WRONGTYPE") {
			t.Errorf("%s: %d records, error %v; want %d and WRONGTYPE", name, len(keys), err, len(want))
		}
	}
}

// The clocks of masters may differ, and each gives the fences of its records.
func TestClocks_MastersDiffer_SlowestAndFastest(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	id := func(i int) string {
		return clientAt(t, all.Masters[i].URL()).Do(t.Context(), "cluster", "myid").Val().(string)
	}
	clock := "(" + wallClock + " + (({['" + id(0) + "'] = 3600000000, ['" + id(1) + "'] = -3600000000})[redis.call('CLUSTER', 'MYID')] or 0))"
	s := openCluster(t, all, &Options{clock: clock})
	slowest, fastest, err := s.Clocks(t.Context())
	if apart := fastest.Sub(slowest); err != nil || apart < 2*time.Hour-time.Minute || apart > 2*time.Hour+time.Minute {
		t.Errorf("%v and %v, error %v; want 2h apart", slowest, fastest, err)
	}
	all.Masters[2].Kill()
	if _, _, err := s.Clocks(t.Context()); err == nil || !strings.Contains(err.Error(), "node "+all.Masters[2].Addr()) {
		t.Errorf("a master is down: error %v; want one that names it", err)
	}
}
