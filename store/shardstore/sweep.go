package shardstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// place is where a sweep continues.
type place struct {
	again  bool     // this is the second try of the shards that failed
	failed []string // the shards still to be tried again
	shard  string
	inner  store.Cursor // the shard's cursor
}

// cursor is the place as text. No name holds a bar or a comma.
func (p *place) cursor() store.Cursor {
	turn := "1"
	if p.again {
		turn = "2"
	}
	return store.Cursor(turn + "|" + strings.Join(p.failed, ",") + "|" + p.shard + "|" + string(p.inner))
}

func (s *Store) place(c store.Cursor) (place, error) {
	if c == "" {
		return place{shard: s.shards[0].name}, nil
	}
	bad := fmt.Errorf("shardstore: sweep cursor is %q; it must be empty or the Next of this store's last step", c)
	f := strings.SplitN(string(c), "|", 4)
	if len(f) != 4 || f[0] != "1" && f[0] != "2" || s.named(f[2]) < 0 {
		return place{}, bad
	}
	p := place{again: f[0] == "2", shard: f[2], inner: store.Cursor(f[3])}
	if f[1] != "" {
		p.failed = strings.Split(f[1], ",")
	}
	for _, name := range p.failed {
		if s.named(name) < 0 {
			return place{}, bad
		}
	}
	return p, nil
}

func (s *Store) named(name string) int {
	return slices.IndexFunc(s.shards, func(sh shard) bool { return sh.name == name })
}

// next moves to the next shard, and after the last to those that failed. False:
// the pass is over.
func (s *Store) next(p *place) bool {
	p.inner = ""
	if i := s.named(p.shard) + 1; !p.again && i < len(s.shards) {
		p.shard = s.shards[i].name
		return true
	}
	if len(p.failed) == 0 {
		return false
	}
	p.again, p.shard, p.failed = true, p.failed[0], p.failed[1:]
	return true
}

// Sweep implements store.Store. A pass goes from shard to shard. All lapsed records
// of a step are of one shard, and Now is its clock. If a shard fails, the pass
// sweeps the others first and tries it once more; if it fails again, the pass ends
// with its error.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SweepResult{}, err
	}
	if limit < 1 {
		return store.SweepResult{}, fmt.Errorf("shardstore: sweep limit is %d; it must be at least 1", limit)
	}
	p, err := s.place(from)
	if err != nil {
		return store.SweepResult{}, err
	}
	var all store.SweepResult
	for {
		sh := &s.shards[s.named(p.shard)]
		res, err := sh.st.Sweep(ctx, p.inner, limit-all.Deleted)
		switch {
		case err == nil:
			all.Deleted, all.Lapsed, all.Now = all.Deleted+res.Deleted, res.Lapsed, res.Now
			p.inner = res.Next
		case ctx.Err() == nil && !p.again:
			p.failed, p.inner = append(p.failed, sh.name), ""
		case all.Deleted > 0: // return these first; the next step gets the error again
			all.Next = p.cursor()
			return all, nil
		default:
			return store.SweepResult{}, sh.wrap(err)
		}
		if p.inner == "" && !s.next(&p) {
			return all, nil
		}
		if p.inner != "" || len(all.Lapsed) > 0 || all.Deleted >= limit {
			all.Next = p.cursor()
			return all, nil
		}
	}
}
