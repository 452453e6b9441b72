package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// A step of a sweep reads at most so many pages of so many keys. Pages are small,
// so that no command blocks the server for long.
const (
	sweepPage  = 500
	sweepPages = 20
)

// Sweep implements store.Store. It reads all keys of the server's database
// (SCAN), and needs no index. It skips unreadable records, which Get and List report. In a
// cluster it goes from node to node as store.SweepParts says, so that a node that is down
// does not keep it from the others. Records of a slot that is moving are left to a pass after
// the move.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	res, err := s.sweep(ctx, from, max(1, limit))
	if err != nil {
		return store.SweepResult{}, s.explain("sweep", err)
	}
	return res, nil
}

func (s *Store) sweep(ctx context.Context, from store.Cursor, limit int) (res store.SweepResult, err error) {
	if s.closed.Load() {
		return res, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	all, err := s.nodes(ctx)
	if err != nil {
		return res, err
	}
	if s.cluster == nil {
		return s.sweepNode(ctx, all[0], from, limit)
	}
	parts := make([]store.Part, len(all))
	for i, n := range all {
		parts[i] = store.Part{Name: n.name, Sweep: func(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
			res, err := s.sweepNode(ctx, n, from, limit)
			return res, n.explain(err)
		}}
	}
	return store.SweepParts(ctx, from, limit, parts)
}

// place is where the sweep of a node continues: the cursor of its SCAN, and the last
// Redis key of a lapsed record that was returned from that page. A page that is
// read again may hold more keys, so each page is sorted.
type place struct {
	scan uint64
	last string
}

func (p *place) cursor() store.Cursor {
	return store.Cursor(fmt.Sprintf("%d %s", p.scan, p.last))
}

func parsePlace(from store.Cursor) (p place, err error) {
	if from == "" {
		return p, nil
	}
	scan, last, ok := strings.Cut(string(from), " ")
	n, err := strconv.ParseUint(scan, 10, 64)
	if err != nil || !ok {
		return p, fmt.Errorf("cursor is %q; it must be empty or the Next of this store's last step", from)
	}
	return place{n, last}, nil
}

// sweepNode is one step of a sweep on a node.
func (s *Store) sweepNode(ctx context.Context, n node, from store.Cursor, limit int) (res store.SweepResult, err error) {
	pos, err := parsePlace(from)
	if err != nil {
		return res, err
	}
	w := &sweeper{s: s, node: n, left: limit}
	for range sweepPages {
		done, err := w.page(ctx, &pos)
		if err != nil {
			return res, err
		}
		if done {
			return w.result(), nil
		}
		if w.left == 0 {
			break
		}
	}
	w.res.Next = pos.cursor()
	return w.result(), nil
}

// sweeper is one step of a sweep.
type sweeper struct {
	s    *Store
	node node
	left int // how many more records the limit allows
	res  store.SweepResult
}

// result returns the records that have lapsed by the clock of the last answer.
func (w *sweeper) result() store.SweepResult {
	kept := w.res.Lapsed[:0]
	for i := range w.res.Lapsed {
		if w.res.Lapsed[i].Lapsed(w.res.Now) {
			kept = append(kept, w.res.Lapsed[i])
		}
	}
	w.res.Lapsed = kept
	return w.res
}

// page sweeps a page and moves the place on. Done: it was the last page.
func (w *sweeper) page(ctx context.Context, pos *place) (done bool, err error) {
	names, scan, err := w.s.scan(ctx, w.node, pos.scan, sweepPage)
	if err != nil {
		return false, err
	}
	expired, lapsed, err := w.expiredAndLapsed(ctx, names)
	if err != nil {
		return false, err
	}
	for len(expired) > 0 && w.left > 0 { // a record that is moving is skipped, and costs nothing of the limit
		n := min(len(expired), w.left)
		if err := w.take(ctx, expired[:n]); err != nil {
			return false, err
		}
		expired = expired[n:]
	}
	if len(expired) > 0 {
		return false, nil // the same page again, without the deleted ones
	}
	for len(lapsed) > 0 && lapsed[0] <= pos.last {
		lapsed = lapsed[1:]
	}
	for len(lapsed) > 0 && w.left > 0 {
		n := min(len(lapsed), w.left)
		if err := w.take(ctx, lapsed[:n]); err != nil {
			return false, err
		}
		pos.last, lapsed = lapsed[n-1], lapsed[n:]
	}
	switch {
	case len(lapsed) > 0: // the page has more
	case scan != 0:
		*pos = place{scan: scan}
	default:
		return true, nil
	}
	return false, nil
}

// expiredAndLapsed returns the Redis keys of expired records and of lapsed ones. It reads
// only the heads of the records, in two round trips, because most records are
// neither.
func (w *sweeper) expiredAndLapsed(ctx context.Context, names []string) (expired, lapsed []string, err error) {
	now, err := w.s.clock(ctx, w.node)
	if err != nil {
		return nil, nil, err
	}
	if w.res.Now = store.Time(now); len(names) == 0 {
		return nil, nil, nil
	}
	pipe := w.node.client.Pipeline()
	heads := make([]*redis.StringCmd, len(names))
	for i, n := range names {
		heads[i] = pipe.GetRange(ctx, n, 0, atState)
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	for i, h := range heads {
		v, err := h.Result()
		if moved(err) || redis.HasErrorPrefix(err, "WRONGTYPE") {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		switch r := parseHead(v); {
		case r.Expired(w.res.Now):
			expired = append(expired, names[i])
		case r.Lapsed(w.res.Now):
			lapsed = append(lapsed, names[i])
		}
	}
	return expired, lapsed, nil
}

// parseHead reads from the head of a record whether it has expired or lapsed. It
// agrees with the sweep script, so that no record which the script would leave
// stops a page.
func parseHead(head string) (r store.Record) {
	if len(head) <= atState || head[0] != store.Format {
		return r
	}
	number := func(offset int) int64 { return int64(binary.BigEndian.Uint64([]byte(head[offset : offset+8]))) }
	r.State, r.Until = store.State(head[atState]), store.Time(number(atUntil))
	if r.State == store.Released || r.State.Terminal() {
		r.Expires = store.Time(number(atExpires))
	}
	return r
}

// take deletes expired records and returns lapsed ones, if they still are.
func (w *sweeper) take(ctx context.Context, names []string) error {
	for _, c := range w.s.onNode(ctx, w.node, &w.s.scripts.sweep, names) {
		if moved(c.err) {
			continue
		}
		if c.err != nil {
			return c.err
		}
		w.res.Now = store.Time(c.now)
		switch v := c.val.(type) {
		case string: // lapsed
			if r, err := decode(v); err == nil {
				w.res.Lapsed = append(w.res.Lapsed, r)
				w.left--
			}
		case int64:
			w.res.Deleted += int(v)
			w.left -= int(v)
		}
	}
	return nil
}
