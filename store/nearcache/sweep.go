package nearcache

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/semel-go/semel/store"
)

// inFront begins the cursors of those steps that are the front's. The store's
// clock follows, as it was when its part of the pass ended, in microseconds, and
// after a space the front's own cursor.
const inFront = "\x00front "

// Sweep implements store.Store. A pass over the store ends with one over the
// front, if there is one: what it deletes there is not counted, and what goes
// wrong there ends the pass.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if s.front == nil {
		return s.st.Sweep(ctx, from, limit)
	}
	var res store.SweepResult
	var inner string
	if rest, front := strings.CutPrefix(string(from), inFront); front {
		clock, cursor, _ := strings.Cut(rest, " ")
		micros, err := strconv.ParseInt(clock, 10, 64)
		if err != nil {
			return res, fmt.Errorf("nearcache: sweep cursor %q is not of this store", from)
		}
		res.Now, inner = store.Time(micros), cursor
	} else {
		var err error
		if res, err = s.st.Sweep(ctx, from, limit); err != nil || res.Next != "" {
			return res, err
		}
	}
	f, err := s.front.st.Sweep(ctx, store.Cursor(inner), limit)
	if err != nil {
		return res, ctx.Err()
	}
	for i := range f.Lapsed { // of processes that died over it
		s.clear(ctx, &f.Lapsed[i])
	}
	if f.Next != "" {
		res.Next = inFront + store.Cursor(strconv.FormatInt(store.Micros(res.Now), 10)+" ") + f.Next
	}
	return res, nil
}
