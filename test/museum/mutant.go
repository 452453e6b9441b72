package museum

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one seeded bug.
type Mutant struct {
	Name   string // the bug, in words; unique
	Rule   string // the rule that it breaks, of the table of rules
	Parent string // the project and issue that had it, or one like it; empty: none known
	File   string // where it is, from the root of the repository, with slashes
	// Old is replaced by New. It must occur exactly once in File.
	Old, New string
	// Package is the directory of the tests that must catch it, from the root
	// of the repository.
	Package string
	// Run selects those tests, as go test -run does.
	Run string
}

// The directories that most exhibits name.
const (
	core  = "."
	seam  = "store"
	mem   = "store/memstore"
	lite  = "store/sqlitestore"
	lanes = "store/coalesce"
	door  = "semelhttp"

	upstream = "cmd/semel/internal/upstream"
	sidecar  = "cmd/semel/internal/proxy"
	hooks    = "cmd/semel/internal/hook"

	consumer = "consume"
	joined   = "consume/semelkafka/kafkapg"

	fast   = "store/redisstore"
	nearby = "store/nearcache"
	shards = "store/shardstore"

	postgres = "store/pgstore"
	pgkafka  = "store/pgstore/pgkafka"
	pgnotify = "store/pgstore/internal/notify"
)

// All is the whole collection, in the order of the topics.
func All() []Mutant {
	return slices.Concat(claims, swaps, leases, settlements, fences, fingerprints, policies, scopes, replays, tombstones,
		outages, attempts, waits, derivations, reservations, reconciliations, sweeps, transactions, doors, clients, sidecars, consumers, sqlites, coalescers,
		caches, shardings, redises, kafkas,
		postgreses, postgresTxs, postgresBatches, postgresNotes, adapters)
}

// mutated is the text of the mutant's file with the bug in it.
func (m *Mutant) mutated(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return "", err
	}
	return m.apply(string(b))
}

func (m *Mutant) apply(source string) (string, error) {
	switch n := strings.Count(source, m.Old); {
	case m.Old == m.New:
		return "", fmt.Errorf("mutant %q: Old and New are equal", m.Name)
	case n != 1:
		return "", fmt.Errorf("mutant %q: its Old text occurs %d times in %s, not once; the code has changed, so mend the mutant: %q", m.Name, n, m.File, m.Old)
	}
	return strings.Replace(source, m.Old, m.New, 1), nil
}

// check says what is missing in the description itself.
func (m *Mutant) check() error {
	for field, v := range map[string]string{
		"Name": m.Name, "Rule": m.Rule, "File": m.File, "Old": m.Old, "Package": m.Package, "Run": m.Run,
	} {
		if v == "" {
			return fmt.Errorf("mutant %q: %s is empty", m.Name, field)
		}
	}
	if rules[m.Rule] == "" {
		return fmt.Errorf("mutant %q: there is no rule %q", m.Name, m.Rule)
	}
	return nil
}
