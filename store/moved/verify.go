package moved

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel/store"
)

// VerifyStats are the counts of a comparison.
type VerifyStats struct {
	Read       int64 `json:"read"`
	Same       int64 `json:"same"`
	Later      int64 `json:"later"`      // the new store has gone on
	Tombstones int64 `json:"tombstones"` // the same, without the answer's body
	Expired    int64 `json:"expired"`
	InFlight   int64 `json:"in_flight"` // in the old store, and not in the new one
	Missing    int64 `json:"missing"`
	Different  int64 `json:"different"`
	Unreadable int64 `json:"unreadable"`
}

// Complete reports whether the new store has all that the old one has.
func (s *VerifyStats) Complete() bool { return s.InFlight+s.Missing+s.Different+s.Unreadable == 0 }

// Difference is a record of the old store that the new one does not have as it is.
type Difference struct {
	Key store.Key
	// Problem says what differs: "missing", "in flight", an error or names of fields.
	Problem string
}

// Verify compares each record of the old store that has not expired with the new store,
// and calls report with each difference; nil: they are only counted. It changes nothing.
// Stop the processes that use the old store first.
func Verify(ctx context.Context, to, from store.Store, report func(Difference)) (s VerifyStats, err error) {
	m, err := newMover(to, from)
	if err != nil {
		return s, err
	}
	list, ok := store.As[store.Lister](from)
	if !ok {
		return s, errors.New("moved: the old store cannot list its records; it must implement store.Lister")
	}
	if report == nil {
		report = func(Difference) {}
	}
	for f, err := range list.List(ctx, store.Filter{Repeats: true}) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			s.Unreadable++
			continue
		case err != nil:
			return s, fmt.Errorf("moved: list the old store: %w", err)
		}
		s.Read++
		if err := m.compare(ctx, &f, &s, report); errors.Is(err, store.ErrCorrupt) {
			s.Unreadable++
			report(Difference{f.Record.Key, "cannot be read: " + err.Error()})
		} else if err != nil {
			return s, err
		}
	}
	return s, nil
}

// compare compares a record of the old store with the record that the new store has.
func (m *mover) compare(ctx context.Context, f *store.Found, s *VerifyStats, report func(Difference)) error {
	r := &f.Record
	if r.Expired(f.Now) {
		s.Expired++
		return nil
	}
	current, err := m.to.Get(ctx, r.Key)
	switch {
	case errors.Is(err, store.ErrNotFound) && r.State == store.Processing && !r.Lapsed(f.Now):
		s.InFlight++
		report(Difference{r.Key, "in flight"})
		return nil
	case errors.Is(err, store.ErrNotFound):
		s.Missing++
		report(Difference{r.Key, "missing"})
		return nil
	case err != nil:
		return fmt.Errorf("moved: read the new store: %w", err)
	case current.Record.Later(r):
		s.Later++
		return nil
	}
	problem, err := m.difference(ctx, r, &current.Record)
	switch {
	case errors.Is(err, errChanged):
		problem = "still changes in the old store"
		fallthrough
	case err == nil && problem != "":
		s.Different++
		report(Difference{r.Key, problem})
	case err != nil:
		return err
	case current.Record.Outcome.Gone && !r.Outcome.Gone:
		s.Tombstones++
	default:
		s.Same++
	}
	return nil
}

// difference names the fields that differ; empty: none does.
func (m *mover) difference(ctx context.Context, old, moved *store.Record) (fields string, err error) {
	differs := func(name string, same bool) {
		if !same {
			if fields != "" {
				fields += ", "
			}
			fields += name
		}
	}
	differs("state", old.State == moved.State)
	differs("policy", old.Policy == moved.Policy)
	differs("fence", old.Fence == moved.Fence)
	differs("owner", old.Owner == moved.Owner)
	differs("holder", old.Holder == moved.Holder)
	differs("fingerprint", old.Fingerprint == moved.Fingerprint)
	differs("attempt", old.Attempt == moved.Attempt)
	differs("until", old.Until.Equal(moved.Until))
	differs("outcome", old.Outcome.Equal(moved.Outcome) || moved.Outcome.Gone && old.Outcome.Code == moved.Outcome.Code)
	differs("last error", old.LastError == moved.LastError)
	differs("former owners", slices.Equal(old.FormerOwners, moved.FormerOwners))
	differs("created", old.Created.Equal(moved.Created))
	differs("updated", old.Updated.Equal(moved.Updated))
	differs("expires", old.Expires.Equal(moved.Expires))
	steps, err := m.steps(ctx, old)
	if err != nil {
		return "", err
	}
	if len(steps) > 0 && fields == "" {
		journal, _ := store.As[store.Journal](m.to)
		others, err := journal.Steps(ctx, moved.Lease())
		if err != nil {
			return "", fmt.Errorf("moved: read the steps in the new store: %w", err)
		}
		differs("steps", slices.EqualFunc(steps, others, func(a, b store.Step) bool {
			return a.Equal(&b) && a.Attempt == b.Attempt && a.Recorded.Equal(b.Recorded)
		}))
	}
	return fields, nil
}
