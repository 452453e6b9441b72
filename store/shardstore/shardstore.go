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

// Store is several stores as one. Make it with New. It is safe for concurrent use.
// It does not close the stores.
type Store struct {
	shards   []shard // by name
	optional store.Store
}

type shard struct {
	name   string
	seed   uint64
	st     store.Store
	extent store.Extent // of its errors
}

var _ store.Store = (*Store)(nil)

var goodName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// New makes one store of all shards. It does no I/O, and its error names every
// invalid field.
func New(shards []Shard) (*Store, error) {
	var errs []error
	if len(shards) == 0 {
		errs = append(errs, errors.New("shardstore: there are 0 shards; pass at least 1"))
	}
	s := &Store{}
	extent := store.ExtentPart
	if len(shards) == 1 {
		extent = store.ExtentStore
	}
	seen := map[string]bool{}
	for i, sh := range shards {
		if !goodName.MatchString(sh.Name) {
			errs = append(errs, fmt.Errorf("shardstore: shard %d: Name is %q; it must be 1 to 64 letters, digits, dots, underscores and hyphens", i, sh.Name))
		}
		if seen[sh.Name] {
			errs = append(errs, fmt.Errorf("shardstore: shard %d: Name is %q, which another shard has; names must be unique", i, sh.Name))
		}
		if sh.Store == nil {
			errs = append(errs, fmt.Errorf("shardstore: shard %d (%q): Store is nil", i, sh.Name))
		}
		seen[sh.Name] = true
		sum := sha256.Sum256([]byte(sh.Name))
		s.shards = append(s.shards, shard{sh.Name, binary.BigEndian.Uint64(sum[:]), sh.Store, extent})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(s.shards, func(a, b shard) int { return cmp.Compare(a.name, b.name) })
	s.optional = s.abilities()
	return s, nil
}

// shardOf is the index of the shard that has a key. A change of this function
// moves keys.
func (s *Store) shardOf(k store.Key) int {
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

// On returns the name of the shard that has a key. It does no I/O.
func (s *Store) On(k store.Key) string { return s.shards[s.shardOf(k)].name }

// Names returns the names of the shards, sorted.
func (s *Store) Names() []string {
	names := make([]string, len(s.shards))
	for i := range s.shards {
		names[i] = s.shards[i].name
	}
	return names
}

// Unwrap returns stores for store.As that implement the optional interfaces which
// the shards have. It never returns a shard.
func (s *Store) Unwrap() store.Store { return s.optional }

// wrap adds the shard's name to its error, and that the keys of other shards are
// not concerned. An error that is an answer stays as it is.
func (sh *shard) wrap(err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrLeaseLost) {
		return err
	}
	return store.WithExtent(fmt.Errorf("shardstore: shard %q: %w", sh.name, err), sh.extent)
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	sh := &s.shards[s.shardOf(p.Key)]
	f, err := sh.st.Claim(ctx, p)
	return f, sh.wrap(err)
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	sh := &s.shards[s.shardOf(seen.Key)]
	f, err := sh.st.Swap(ctx, seen, p)
	return f, sh.wrap(err)
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	sh := &s.shards[s.shardOf(l.Key)]
	return sh.wrap(sh.st.Settle(ctx, l, t))
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	sh := &s.shards[s.shardOf(k)]
	f, err := sh.st.Get(ctx, k)
	return f, sh.wrap(err)
}
