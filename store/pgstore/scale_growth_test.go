package pgstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestScale_LargeTable measures claims of new keys in a table of many rows
// against one of a million: SEMEL_TEST_GROWTH=20 for 20 million, of which 100
// need 70 GB. It takes some minutes to fill them; see scaleURL for how to do that
// before.
func TestScale_LargeTable(t *testing.T) {
	t.Parallel()
	n := scaleOf(t, "SEMEL_TEST_GROWTH", "how many million rows the large table has")
	url := scaleURL(t)
	stores := [2]*Store{filled(t, url, million, 0), filled(t, url, n*million, 0)}
	for _, s := range stores {
		warm(t, s)
	}
	for _, g := range []int{1, 16, 64} {
		for _, kind := range []keyKind{inOrder, random} {
			for _, when := range []string{"after a checkpoint", "later"} {
				// A page that was changed since a checkpoint is logged in part, another
				// as a whole: later most are of the first kind.
				if when == "later" {
					for i, s := range stores {
						_, _ = claimer(s, kind).loop(t, "", 64, 1, 2*time.Second+time.Duration(i*n)*800*time.Millisecond)
					}
				} else {
					mustExec(t, stores[0].ownPool, "CHECKPOINT")
				}
				var p50, p99 [2][]time.Duration
				const rounds = 5
				for range rounds {
					for i, s := range stores {
						_, took := claimer(s, kind).loop(t, "", g, 1, 700*time.Millisecond)
						slices.Sort(took)
						p50[i], p99[i] = append(p50[i], took[len(took)/2]), append(p99[i], took[len(took)*99/100])
					}
				}
				for i, what := range [][2][]time.Duration{p50, p99} {
					small, large := median(what[0]), median(what[1])
					t.Logf("claims by %2d goroutines, keys %s, %-18s %s: %8v of 1 million rows, %8v of %d million: %.2fx", g, kind, when,
						[]string{"p50", "p99"}[i], small.Round(time.Microsecond), large.Round(time.Microsecond), n, float64(large)/float64(small))
				}
			}
		}
	}
}

// keyKind is what new keys look like.
type keyKind string

const (
	inOrder keyKind = "in order" // UUIDs of version 7
	random  keyKind = "random"   // of version 4
)

func (k keyKind) key() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	version := byte(4)
	if k == inOrder {
		version = 7
		ms := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
		copy(u[:6], ms[2:])
	}
	u[6], u[8] = u[6]&0x0f|version<<4, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// claimer claims new keys.
func claimer(s *Store, kind keyKind) *competitor {
	return &competitor{name: "claim", do: func(ctx context.Context, _ string) error {
		_, err := s.Claim(ctx, proposal(kind.key()))
		return err
	}}
}

func median[T float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
