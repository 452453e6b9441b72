package museum

import (
	"fmt"
	"slices"
)

// Mutant is one seeded bug.
type Mutant struct {
	Name   string // the bug, in words; unique
	Rule   string // the rule that it breaks, of the table of rules
	Parent string // the project and issue that had it, or one like it; empty: none known
	Dir    string // the directory of the package that it changes, from the root of the repository, with slashes
	// Func is the declaration that it changes: "settle", "(*Guard).settle",
	// "Key.valid", "const limit", "var limits" or "type Key".
	Func string
	// Old is replaced by New. It occurs exactly once in Func: as Go, so that
	// comments and format do not count, or else as a part of a string literal,
	// in which any white space equals any other.
	Old, New string
	// Package is the directory of the tests that must catch it, from the root
	// of the repository.
	Package string
	// Run selects those tests, as go test -run does.
	Run string
}

// The directories that most exhibits name.
const (
	core        = "."
	seam        = "store"
	mem         = "store/memstore"
	lite        = "store/sqlitestore"
	coalesceDir = "store/coalesce"
	flow        = "saga"
	door        = "semelhttp"

	upstream = "cmd/semel/internal/upstream"
	sidecar  = "cmd/semel/internal/proxy"
	limits   = "cmd/semel/internal/limit"
	hooks    = "cmd/semel/internal/hook"
	program  = "cmd/semel/internal/program"

	delivery   = "cmd/semel/semel-deliver/internal/deliver"
	cloudEvent = "cmd/semel/semel-deliver/internal/event"

	consumer = "consume"
	kafkapg  = "consume/semelkafka/kafkapg"
	router   = "consume/semelwatermill"

	fast   = "store/redisstore"
	dynamo = "store/dynamostore"
	lambda = "semellambda"
	rpc    = "semelgrpc"
	conn   = "semelconnect"
	tool   = "semelmcp"
	nearby = "store/nearcache"
	shards = "store/shardstore"
	moved  = "store/moved"

	postgres = "store/pgstore"
	pgkafka  = "store/pgstore/pgkafka"
	pgoutbox = "store/pgstore/pgoutbox"

	sqliteoutbox = "store/sqlitestore/sqliteoutbox"

	outboxDir = "outbox"

	publishDir = "cmd/semel/semel-deliver/internal/publish"

	handlertx = "store/pgstore/internal/handlertx"
	pgnotify  = "store/pgstore/internal/notify"
)

// All is the whole collection, in the order of the topics.
func All() []Mutant {
	return slices.Concat(claims, swaps, formerOwners, leases, settlements, unreadables, fences, fingerprints, policies, scopes, replays, tombstones, frameworks,
		outages, attempts, waits, derivations, steps, sagas, sagaRecords, sagaShards, reservations, reconciliations, sweeps, transactions, doors, resultHeaders, clients, sidecars, sidecarRequests, deliveries, tenantDeliveries, consumers, sqlites, coalescers,
		caches, shardings, observers, imports, moves, redises, dynamos, dynamoObjects, kafkas, watermills, lambdas, rpcs,
		postgreses, postgresTxs, postgresBatches, postgresAttempts, postgresEnds, postgresLimits, adapters, copyPlaces, rabbits, jetStreams, pulsars, outboxes, outboxOutages, outboxCalls, consoles, telemetries, encryptions, hashedKeys, erasures, audits, programs, environments)
}

// check says what is missing in the description itself.
func (m *Mutant) check() error {
	for field, v := range map[string]string{
		"Name": m.Name, "Rule": m.Rule, "Dir": m.Dir, "Func": m.Func, "Old": m.Old, "Package": m.Package, "Run": m.Run,
	} {
		if v == "" {
			return fmt.Errorf("mutant %q: %s is empty", m.Name, field)
		}
	}
	if m.Old == m.New {
		return fmt.Errorf("mutant %q: Old and New are equal", m.Name)
	}
	if rules[m.Rule] == "" {
		return fmt.Errorf("mutant %q: there is no rule %q", m.Name, m.Rule)
	}
	return nil
}

// place names for people where the bug is.
func (m *Mutant) place() string {
	return m.Func + " of " + m.Dir
}
