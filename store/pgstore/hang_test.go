package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A connection that hangs is given up with the renewal on it, and the driver
// takes its time to close it. The next renewal does not wait for that: nor does
// that of another Guard.
func TestARenewalThatHangsHoldsUpNoOther(t *testing.T) {
	for name, connected := range map[string]bool{"as it connects": false, "once it is connected": true} {
		t.Run(name, func(t *testing.T) {
			first := openNew(t, nil)
			h, through := newHanger(t)
			s := openAt(t, through, &Options{Schema: first.opt.Schema})
			r := claim(t, s, "k")
			renew := func(d time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				_, err := s.Renew(ctx, []store.Lease{r.Lease()}, time.Hour)
				return err
			}
			if connected {
				if err := renew(time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			h.next.Store(true)
			if err := renew(100 * time.Millisecond); err == nil || h.hung.Load() != 1 {
				t.Fatalf("%d connections hang, error %v: this test shows nothing", h.hung.Load(), err)
			}
			if err := renew(10 * time.Second); err != nil {
				t.Errorf("the next renewal: %v", err)
			}
			if is := get(t, first, "k"); is.Until.Sub(r.Until) < 50*time.Minute {
				t.Errorf("the lease ends at %v", is.Until)
			}
		})
	}
}

// One connection that hangs does not cost an outcome: a settlement goes again, on
// another.
func TestASettlementThatHangsIsStored(t *testing.T) {
	first := openNew(t, nil)
	h, through := newHanger(t)
	s := openAt(t, through, &Options{Schema: first.opt.Schema, settleTry: 300 * time.Millisecond})
	_, err := newGuard(t, s).Run(t.Context(), call("k"), func(context.Context, *semel.Execution) (semel.Outcome, error) {
		h.next.Store(true)
		return semel.Outcome{Body: []byte("one")}, nil
	})
	if err != nil || h.hung.Load() != 1 {
		t.Errorf("%d connections hung, and the run ended by %v", h.hung.Load(), err)
	}
}
