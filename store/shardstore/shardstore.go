package shardstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/semel-go/semel/store"
)

// Shard is one of the stores. Both fields are required.
type Shard struct {
	// Name decides which keys the shard has: 1 to 64 letters, digits, dots,
	// underscores and hyphens. Not an address, which may have to change.
	Name  string
	Store store.Store
}

// Store is several stores as one. Safe for concurrent use. It owns none of
// them: who has opened one closes it. Only New makes one; the zero Store is
// invalid.
type Store struct {
	shards []shard // by name
	can    store.Store
}

type shard struct {
	name string
	seed uint64
	st   store.Store
}

var _ store.Store = (*Store)(nil)

var goodName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// New makes one store of all. It does no I/O, and reports all that is wrong
// with the shards.
func New(shards []Shard) (*Store, error) {
	var errs []error
	if len(shards) == 0 {
		errs = append(errs, errors.New("shardstore: there are no shards; at least 1 is needed"))
	}
	s := &Store{}
	seen := map[string]bool{}
	for i, sh := range shards {
		if !goodName.MatchString(sh.Name) {
			errs = append(errs, fmt.Errorf("shardstore: shard %d: Name is %q; it must be 1 to 64 letters, digits, dots, underscores and hyphens", i, sh.Name))
		}
		if seen[sh.Name] {
			errs = append(errs, fmt.Errorf("shardstore: shard %d: Name is %q, as another's; each needs its own", i, sh.Name))
		}
		if sh.Store == nil {
			errs = append(errs, fmt.Errorf("shardstore: shard %d (%q): Store is nil", i, sh.Name))
		}
		seen[sh.Name] = true
		sum := sha256.Sum256([]byte(sh.Name))
		s.shards = append(s.shards, shard{sh.Name, binary.BigEndian.Uint64(sum[:]), sh.Store})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(s.shards, func(a, b shard) int { return cmp.Compare(a.name, b.name) })
	s.can = s.abilities()
	return s, nil
}

// of is the shard that has a key. To change it is to move keys.
func (s *Store) of(k store.Key) int {
	d := k.Digest()
	h := binary.BigEndian.Uint64(d[:])
	best, highest := 0, uint64(0)
	for i := range s.shards {
		if w := mix(h ^ s.shards[i].seed); w > highest {
			best, highest = i, w
		}
	}
	return best
}

// mix spreads the bits of x over all 64 (the end of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// On is the name of the shard that has a key. It asks nobody.
func (s *Store) On(k store.Key) string { return s.shards[s.of(k)].name }

// Names are those of the shards, sorted.
func (s *Store) Names() []string {
	names := make([]string, len(s.shards))
	for i := range s.shards {
		names[i] = s.shards[i].name
	}
	return names
}

// Unwrap leads to what all shards together can do besides, for store.As. It
// never leads to a shard.
func (s *Store) Unwrap() store.Store { return s.can }

// says is a shard's error, with its name; an answer stays as it is.
func (sh *shard) says(err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrLeaseLost) {
		return err
	}
	return fmt.Errorf("shardstore: shard %q: %w", sh.name, err)
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	sh := &s.shards[s.of(p.Key)]
	f, err := sh.st.Claim(ctx, p)
	return f, sh.says(err)
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	sh := &s.shards[s.of(seen.Key)]
	f, err := sh.st.Swap(ctx, seen, p)
	return f, sh.says(err)
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	sh := &s.shards[s.of(l.Key)]
	return sh.says(sh.st.Settle(ctx, l, t))
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	sh := &s.shards[s.of(k)]
	f, err := sh.st.Get(ctx, k)
	return f, sh.says(err)
}
