package moved_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/moved"
)

// unreadable is a store in which the record of one key, or a step of it, cannot be read.
type unreadable struct {
	*clocked
	key    store.Key
	record bool  // false: its steps
	fault  error // nil: the record, or the step, is corrupt
}

func (u unreadable) err(k store.Key, record bool) error {
	switch {
	case k != u.key || record != u.record:
		return nil
	case u.fault != nil:
		return u.fault
	}
	return fmt.Errorf("%w: the key that encrypts it is not known", store.ErrCorrupt)
}

func (u unreadable) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if err := u.err(k, true); err != nil {
		return store.Found{}, err
	}
	return u.clocked.Get(ctx, k)
}

func (u unreadable) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	if err := u.err(r.Key, true); err != nil {
		return store.Found{}, err
	}
	return u.clocked.Receive(ctx, r, steps)
}

func (u unreadable) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := u.err(l.Key, false); err != nil {
		return nil, err
	}
	return u.clocked.Steps(ctx, l)
}

func TestCopy_OneRecordUnreadable_OthersAreCopied(t *testing.T) {
	const records = 50
	for name, c := range map[string]struct{ from, to unreadable }{
		"a step in the old store":   {from: unreadable{key: key("7")}},
		"a record in the new store": {to: unreadable{key: key("7"), record: true}},
	} {
		to, from := stores()
		c.to.clocked, c.from.clocked = to, from
		for i := range records {
			put(t, from, key(fmt.Sprint(i)), store.Completed)
		}
		for _, dry := range []bool{true, false} {
			var mu sync.Mutex
			var errs []error
			stats, err := moved.Copy(t.Context(), c.to, c.from, &moved.CopyOptions{DryRun: dry, Unreadable: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}})
			if dry && c.from.key == key("7") {
				continue // a dry run reads no steps
			}
			if want := (moved.CopyStats{Read: records, Copied: records - 1, Unreadable: 1}); err != nil || stats != want || len(errs) != 1 || !errors.Is(errs[0], store.ErrCorrupt) {
				t.Errorf("%s, dry run %v: %+v, %v, %v", name, dry, stats, errs, err)
			}
		}
		var differences []moved.Difference
		verified, err := moved.Verify(t.Context(), c.to, c.from, func(d moved.Difference) { differences = append(differences, d) })
		if err != nil || verified.Same != records-1 || verified.Complete() || len(differences) != 1 || differences[0].Key != key("7") {
			t.Errorf("%s: compared %+v, %+v, %v", name, verified, differences, err)
		}
	}
}

// A step that cannot be read in one of the stores is not equal, and is named.
func TestVerify_StepUnreadable_CountedAndNamed(t *testing.T) {
	to, from := stores()
	for _, v := range []string{"1", "2"} {
		r := put(t, from, key(v), store.Released)
		if _, err := from.Receive(t.Context(), later(r), []store.Step{{Name: "s", Recorded: time.UnixMicro(noon).UTC(), Outcome: store.Outcome{Code: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to unreadable }{
		"the old store": {from: unreadable{key: key("2")}},
		"the new store": {to: unreadable{key: key("2")}},
	} {
		c.to.clocked, c.from.clocked = to, from
		var differences []moved.Difference
		verified, err := moved.Verify(t.Context(), c.to, c.from, func(d moved.Difference) { differences = append(differences, d) })
		if want := (moved.VerifyStats{Read: 2, Same: 1, Unreadable: 1}); err != nil || verified != want || len(differences) != 1 || differences[0].Key != key("2") || !strings.Contains(differences[0].Problem, "cannot be read") {
			t.Errorf("%s: %+v, %+v, %v", name, verified, differences, err)
		}
	}
}

// later is a later version of a record.
func later(r store.Record) store.Record {
	r.Fence++
	return r
}

// changing is a store in which a record changes after it was read, and which does not answer
// the next read.
type changing struct {
	unreadable
	reads atomic.Int64
}

func (c *changing) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if c.reads.Add(1)%2 == 0 {
		return store.Found{}, errDown
	}
	return c.clocked.Get(ctx, k)
}
