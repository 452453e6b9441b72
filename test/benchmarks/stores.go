package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/store/sqlitestore"
)

// The groups of the section stores. In each the contenders keep the same promise about
// their writes, and the first is Semel.
const (
	inMemory       = "memory"
	sqliteLeased   = "SQLite"
	sqliteAtomic   = "SQLite, Atomic"
	postgresLeased = "PostgreSQL"
	postgresAtomic = "PostgreSQL, Atomic"
	redisMemory    = "Redis, in memory"
	redisSynced    = "Redis, each write synced"
	dynamoStub     = "DynamoDB (a stub that answers after 5 ms)"
)

// ours begins the names of Semel's contenders.
const ours = "Semel"

// group is contenders on one server.
type group struct {
	name string
	open func(ctx context.Context, l *lab) ([]contender, error)
}

var storeGroups = []group{
	{inMemory, memoryContenders},
	{sqliteLeased, sqliteContenders},
	{sqliteAtomic, sqliteAtomicContenders},
	{postgresLeased, postgresContenders},
	{postgresAtomic, postgresAtomicContenders},
	{redisMemory, func(ctx context.Context, l *lab) ([]contender, error) { return redisContenders(ctx, l, redistest.Fast) }},
	{redisSynced, func(ctx context.Context, l *lab) ([]contender, error) {
		return redisContenders(ctx, l, redistest.Durable)
	}},
	{dynamoStub, dynamoContenders},
}

// measureStores compares the contenders of each group.
func measureStores(ctx context.Context, l *lab) ([]Figure, error) { return l.groups(ctx, storeGroups) }

func (l *lab) groups(ctx context.Context, groups []group) (all []Figure, err error) {
	for _, g := range groups {
		cs, err := g.open(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		for _, callers := range l.opt.callers {
			for _, kind := range []string{newCalls, replays} {
				figures, err := l.compare(ctx, g.name, kind, callers, ofKind(cs, kind))
				if err != nil {
					return nil, err
				}
				all = append(all, figures...)
			}
		}
	}
	return all, nil
}

// ofKind are the contenders that make calls of a kind: a batch makes new calls only.
func ofKind(cs []contender, kind string) []contender {
	return slices.DeleteFunc(slices.Clone(cs), func(c contender) bool { return c.batch != nil && kind != newCalls })
}

func memoryContenders(_ context.Context, _ *lab) ([]contender, error) {
	do, err := leased(memstore.New(nil))
	return []contender{{name: ours, do: do}, {name: "a map and a mutex", do: (&rivalMap{seen: map[string]string{}}).do}}, err
}

func sqliteContenders(ctx context.Context, l *lab) ([]contender, error) {
	st, rival, err := l.sqlite(ctx, "leased")
	if err != nil {
		return nil, err
	}
	do, err := leased(st)
	return []contender{{name: ours, do: do}, {name: "one commit a step", do: rival.twoCommits}, {name: "INSERT alone", do: rival.insertOnly}}, err
}

func sqliteAtomicContenders(ctx context.Context, l *lab) ([]contender, error) {
	st, rival, err := l.sqlite(ctx, "atomic")
	if err != nil {
		return nil, err
	}
	atomic, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		return nil, err
	}
	db, err := rawSQLite(l.file("atomic.db"))
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE business (key TEXT, amount INTEGER)")
	return []contender{{name: ours, do: inSQLite(atomic)}, {name: "one transaction", do: rival.oneTx}}, errors.Join(err, db.Close())
}

// sqlite opens a store and the rival, in files of their own.
func (l *lab) sqlite(ctx context.Context, name string) (*sqlitestore.Store, *rivalSQLite, error) {
	st, err := sqlitestore.Open(ctx, l.file(name+".db"), nil)
	if err != nil {
		return nil, nil, err
	}
	l.atEnd(st.Close)
	rival, end, err := newRivalSQLite(ctx, l.file(name+"-rival.db"))
	if err != nil {
		return nil, nil, err
	}
	l.atEnd(end)
	return st, rival, nil
}

// poolSize is how many connections the application has, for the rivals and for Atomic.
const poolSize = 24

// postgresLab is a server with a store and the tables of the rivals.
type postgresLab struct {
	store *pgstore.Store
	rival rivalSQL
	busy  func() time.Duration
	url   string
}

func (l *lab) openPostgres(ctx context.Context) (*postgresLab, error) {
	url, busy, err := l.postgres(ctx)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	l.atEnd(func() error { pool.Close(); return nil })
	st, err := pgstore.New(ctx, pool, nil)
	if err != nil {
		return nil, err
	}
	l.atEnd(st.Close)
	db := stdlib.OpenDBFromPool(pool)
	l.atEnd(db.Close)
	_, err = pool.Exec(ctx, rivalTables)
	return &postgresLab{st, rivalSQL{db}, busy, url}, err
}

func postgresContenders(ctx context.Context, l *lab) ([]contender, error) {
	p, err := l.openPostgres(ctx)
	if err != nil {
		return nil, err
	}
	do, err := leased(p.store)
	cs := []contender{{name: ours, do: do, server: p.busy}, {name: "two transactions", do: p.rival.twoTx, server: p.busy}, {name: "INSERT alone", do: p.rival.insertOnly, server: p.busy}}
	bench, err2 := l.pgbench(ctx, p)
	if bench != nil {
		cs = append(cs, *bench)
	}
	return cs, errors.Join(err, err2)
}

func postgresAtomicContenders(ctx context.Context, l *lab) ([]contender, error) {
	p, err := l.openPostgres(ctx)
	if err != nil {
		return nil, err
	}
	atomic, err := pgstore.NewAtomic(p.store, nil)
	return []contender{
		{name: ours, do: inPostgres(atomic), server: p.busy}, {name: "INSERT first", do: p.rival.oneTxInsert, server: p.busy}, {name: "FOR UPDATE first", do: p.rival.oneTxLock, server: p.busy},
	}, err
}

// pgbenchPair is the least SQL that claims and completes a key: two statements, two
// commits.
const pgbenchPair = `\set id random(1, 9000000000000000000)
INSERT INTO minimal (id, owner, state, until) VALUES (:id, :client_id, 2, 0) ON CONFLICT DO NOTHING;
UPDATE minimal SET state = 4, body = '%s' WHERE id = :id AND owner = :client_id AND state = 2;
`

var pgbenchRate = regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`)

// pgbench is the load generator of PostgreSQL, in C; nil if this machine has none.
func (l *lab) pgbench(ctx context.Context, p *postgresLab) (*contender, error) {
	bin, err := pgtest.Bin()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(bin, "pgbench")
	if _, err := os.Stat(program); err != nil {
		l.say("LEFT OUT: pgbench, because there is no %s", program)
		return nil, nil //nolint:nilerr // its tables have no row then
	}
	_, err = p.rival.db.ExecContext(ctx, `CREATE TABLE minimal (id bigint PRIMARY KEY, owner bigint NOT NULL, state smallint NOT NULL, until bigint NOT NULL, body bytea) WITH (fillfactor = 80)`)
	if err != nil {
		return nil, err
	}
	script := l.file("pair.sql")
	if err := os.WriteFile(script, fmt.Appendf(nil, pgbenchPair, answer), 0o600); err != nil {
		return nil, err
	}
	c, each := &contender{name: "pgbench", server: p.busy}, 10 // calls of each caller
	c.batch = func(ctx context.Context, callers int, d time.Duration) (int, time.Duration, error) {
		out, err := exec.CommandContext(ctx, program, "-n", "-M", "prepared", "-c", strconv.Itoa(callers), "-j", "2", "-t", strconv.Itoa(each), "-f", script, p.url).CombinedOutput()
		if err != nil {
			return 0, 0, fmt.Errorf("pgbench: %w\n%s", err, out)
		}
		found := pgbenchRate.FindSubmatch(out)
		if found == nil {
			return 0, 0, fmt.Errorf("pgbench does not say how many transactions it made in a second:\n%s", out)
		}
		rate, err := strconv.ParseFloat(string(found[1]), 64)
		calls := callers * each
		each = max(10, int(rate*d.Seconds())/callers) // in the next round, so that it takes d
		return calls, time.Duration(float64(calls) / rate * float64(time.Second)), err
	}
	return c, nil
}

func redisContenders(ctx context.Context, l *lab, settings []string) ([]contender, error) {
	s, busy, err := l.redis(settings)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: 32})
	l.atEnd(client.Close)
	st, err := redisstore.Open(ctx, s.URL(), nil)
	if err != nil {
		return nil, err
	}
	l.atEnd(st.Close)
	do, err := leased(st)
	rival := rivalRedis{client}
	return []contender{{name: ours, do: do, server: busy}, {name: "SET NX and a pipeline", do: rival.setNX, server: busy}, {name: "a script and HSET", do: rival.script, server: busy}}, err
}

func dynamoContenders(_ context.Context, l *lab) ([]contender, error) {
	stub, err := l.role(roleDynamo, "")
	if err != nil {
		return nil, err
	}
	client := dynamotest.Client(stub.url)
	st, err := dynamostore.New(client, "t", nil)
	if err != nil {
		return nil, err
	}
	do, err := leased(st)
	return []contender{{name: ours, do: do}, {name: "get, put, update", do: rivalDynamo{client}.getPutUpdate}}, err
}
