package storetest

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/store"
)

func (s *side) renew(ctx context.Context, p *step, tm *times, res *result) error {
	var held []store.Lease
	for k := range subjects {
		if m := &s.mem[p.actor][k]; m.held {
			held = append(held, m.lease)
		}
	}
	if m := &s.mem[p.actor][p.key]; m.saw { // and one that may be another actor's, or nobody's
		l := store.Lease{Key: m.seen.Key, Owner: m.seen.Owner, Fence: m.seen.Fence}
		switch p.pick(pickWrong, 4) {
		case 0:
			l.Fence++
		case 1:
			l.Owner[p.pick(pickVariant, 15)] ^= 1
		}
		held = append(held, l)
	}
	errs, err := s.st.Renew(ctx, held, p.renewal(tm))
	if err != nil {
		return err
	}
	if len(errs) != len(held) {
		return fmt.Errorf("Renew of %d leases gave %d results", len(held), len(errs))
	}
	for _, err := range errs {
		one, err := judge(err)
		if err != nil {
			return err
		}
		res.renewals = append(res.renewals, one)
	}
	return nil
}

func (s *side) settle(ctx context.Context, p *step, m *memory, tm *times, res *result) error {
	l, end := m.lease, p.settlement(tm)
	switch p.deed {
	default: // doSettle: as it is
	case doSettleAgain:
		l = m.settleWith
		switch p.pick(pickVariant, 4) {
		case 0, 1:
			end = m.settled
		case 2: // the same but for a header
			end = m.settled
			end.Outcome.Header = []store.Header{{Name: "X-Other"}}
		}
	case doSettleWrong:
		switch p.pick(pickWrong, 5) {
		case 0:
			l.Fence++
			res.mustLose = true
		case 1:
			l.Owner[p.pick(pickVariant, 15)] ^= 1
			res.mustLose = true
		case 2:
			l.Key = s.keys[(res.key+1)%subjects]
			res.mustLose = true
		case 3:
			l = s.mem[(p.actor+1)%actors][res.key].lease // perhaps a good one
			l.Key = s.keys[res.key]
		case 4: // the record that the actor saw last, in any state
			l = store.Lease{Key: m.seen.Key, Owner: m.seen.Owner, Fence: m.seen.Fence}
		}
	}
	var err error
	res.answer, err = judge(s.st.Settle(ctx, l, end))
	if res.answer == fine && !res.mustLose {
		m.settled, m.settleWith = end, l
	}
	return err
}

// sweep makes one pass. It keeps the lapsed records of this history, each once.
func (s *side) sweep(ctx context.Context, limit int, res *result) error {
	return pass(ctx, s.st, limit, func(got store.SweepResult) {
		res.deleted, res.found.Now = res.deleted+got.Deleted, got.Now
		for _, r := range got.Lapsed {
			if r.Key.Tenant == s.keys[0].Tenant && !holds(res.lapsed, r.Key) {
				res.lapsed = append(res.lapsed, r)
			}
		}
	})
}

func holds(rs []store.Record, k store.Key) bool {
	for i := range rs {
		if rs[i].Key == k {
			return true
		}
	}
	return false
}
