package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/store/sqlitestore"
)

// The kinds of records of the section sizes.
const (
	noAnswer  = "no answer"
	kibAnswer = "1 KiB answer"
)

// counted is a new, empty store, and how many bytes it has. A count may close the
// store; it is the last use.
type counted struct {
	name  string
	empty float64
	store store.Store
	bytes func() (float64, error)
	log   func() (float64, error) // bytes of the write-ahead log so far; nil: unknown
}

// measureSizes counts the bytes that a record needs in each store: those of many
// completed calls, divided by their number.
func measureSizes(ctx context.Context, l *lab) (all []Figure, err error) {
	for _, open := range []func(ctx context.Context, l *lab, name string) (*counted, error){countMemory, countSQLite, countPostgres, countRedis, countDynamo} {
		for i, kind := range []string{noAnswer, kibAnswer} {
			c, err := open(ctx, l, strconv.Itoa(i))
			if err != nil {
				return nil, err
			}
			f, err := l.count(ctx, c, kind)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.name, kind, err)
			}
			l.say("  %-28s %-14s %.0f bytes a record", c.name, kind, f.Values["bytes"].Median())
			all = append(all, f)
		}
	}
	return all, nil
}

func (l *lab) count(ctx context.Context, c *counted, kind string) (Figure, error) {
	guard, err := semel.New(c.store, nil)
	if err != nil {
		return Figure{}, err
	}
	var logBefore float64
	if c.log != nil {
		if logBefore, err = c.log(); err != nil {
			return Figure{}, err
		}
	}
	keys := make([]string, l.opt.kept)
	for i := range keys {
		keys[i] = newKey()
	}
	err = each(ctx, 16, keys, func(key string) error {
		out := store.Outcome{Code: 204}
		if kind == kibAnswer {
			out = store.Outcome{Code: 201, Codec: "json", Body: randomAnswer()}
		}
		_, err := guard.Run(ctx, callOf(key), func(context.Context, *semel.Execution) (store.Outcome, error) { return out, nil })
		return err
	})
	if err != nil {
		return Figure{}, err
	}
	f := Figure{Group: c.name, Name: ours, Kind: kind, N: len(keys), Values: map[string]Stat{}}
	if c.log != nil {
		log, err := c.log()
		if err != nil {
			return Figure{}, err
		}
		f.Values["log"] = once((log - logBefore) / float64(len(keys)))
	}
	clear(keys)
	bytes, err := c.bytes()
	f.Values["bytes"] = once((bytes - c.empty) / float64(l.opt.kept))
	return f, err
}

// randomAnswer is 1 KiB of JSON that cannot be compressed much.
func randomAnswer() []byte {
	const frame = `{"token":""}`
	b := make([]byte, (1024-len(frame))*3/4)
	_, _ = rand.Read(b) // it never fails
	return fmt.Appendf(nil, `{"token":%q}`, base64.RawStdEncoding.EncodeToString(b))
}

func countMemory(_ context.Context, l *lab, _ string) (*counted, error) {
	st := memstore.New(nil)
	l.atEnd(func() error { runtime.KeepAlive(st); return nil }) // or it would leave the heap while the next is counted
	heap := func() (float64, error) {
		runtime.GC()
		runtime.GC() // what the first has freed of pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc), nil
	}
	empty, err := heap()
	return &counted{name: inMemory, store: st, bytes: heap, empty: empty}, err
}

func countSQLite(ctx context.Context, l *lab, name string) (*counted, error) {
	file := l.file("sizes-" + name + ".db")
	st, err := sqlitestore.Open(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	return &counted{name: sqliteLeased, store: st, bytes: func() (float64, error) {
		err := st.Close() // it moves the write-ahead log into the file
		return sizeOf(file) + sizeOf(file+"-wal"), err
	}}, nil
}

func countPostgres(ctx context.Context, l *lab, _ string) (*counted, error) {
	url, _, err := l.postgres(ctx)
	if err != nil {
		return nil, err
	}
	st, err := pgstore.Open(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	l.atEnd(st.Close)
	return &counted{
		name: postgresLeased, store: st,
		bytes: func() (float64, error) {
			return postgresNumber(ctx, url, "SELECT pg_total_relation_size('semel.semel_record')::float8")
		},
		log: func() (float64, error) {
			return postgresNumber(ctx, url, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8")
		},
	}, nil
}

func countRedis(ctx context.Context, l *lab, _ string) (*counted, error) {
	s, _, err := l.redis(redistest.Fast)
	if err != nil {
		return nil, err
	}
	st, err := redisstore.Open(ctx, s.URL(), nil)
	if err != nil {
		return nil, err
	}
	used := func() (float64, error) {
		text, err := redisInfo(s.Addr(), "used_memory")
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(text, 64)
	}
	l.atEnd(st.Close)
	empty, err := used()
	return &counted{name: redisMemory, store: st, bytes: used, empty: empty}, err
}

func countDynamo(_ context.Context, l *lab, _ string) (*counted, error) {
	stub, err := l.role(roleDynamo, "")
	if err != nil {
		return nil, err
	}
	st, err := dynamostore.New(dynamotest.Client(stub.url), "t", nil)
	if err != nil {
		return nil, err
	}
	return &counted{name: dynamoStub, store: st, bytes: func() (n float64, err error) {
		res, err := http.Get(stub.url + "/bytes") //nolint:noctx // a stub of this process's own
		if err != nil {
			return 0, err
		}
		b, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			return 0, err
		}
		return strconv.ParseFloat(string(b), 64)
	}}, nil
}
