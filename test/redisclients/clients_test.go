package redisclients

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/semel-go/semel/store/redisstore/redistest"
)

// result is the value that each operation stores.
const result = `{"id":"pay_0123456789","amount":4200,"currency":"EUR","status":"succeeded","created":"2026-11-20T17:00:00Z","customer":"cus_0123456789","description":"one of many"}`

const (
	lock = 30 * time.Second
	keep = 24 * time.Hour
)

// script has a batch of records written, as the store's scripts do.
const script = `for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i], 'NX', 'GET') end return #KEYS`

// client runs an operation as the published pattern does, and a batch.
type client interface {
	once(ctx context.Context, key string) error
	batch(ctx context.Context, keys []string) error
}

type goRedis struct {
	c   *redis.Client
	sha string
}

func (g goRedis) once(ctx context.Context, key string) error {
	won, err := g.c.SetNX(ctx, key+":lock", "1", lock).Result()
	if err != nil || !won {
		return err
	}
	if err := g.c.Get(ctx, key).Err(); !errors.Is(err, redis.Nil) {
		return err
	}
	pipe := g.c.Pipeline()
	pipe.Set(ctx, key, result, keep)
	pipe.Del(ctx, key+":lock")
	_, err = pipe.Exec(ctx)
	return err
}

func (g goRedis) batch(ctx context.Context, keys []string) error {
	args := make([]any, 0, 3+2*len(keys))
	args = append(args, "evalsha", g.sha, len(keys))
	for _, k := range keys {
		args = append(args, k)
	}
	for range keys {
		args = append(args, result)
	}
	return g.c.Do(ctx, args...).Err()
}

type rueidisClient struct {
	c   rueidis.Client
	sha string
}

func (r rueidisClient) once(ctx context.Context, key string) error {
	err := r.c.Do(ctx, r.c.B().Set().Key(key+":lock").Value("1").Nx().Ex(lock).Build()).Error()
	if err != nil {
		return err
	}
	if err := r.c.Do(ctx, r.c.B().Get().Key(key).Build()).Error(); !rueidis.IsRedisNil(err) {
		return err
	}
	for _, res := range r.c.DoMulti(ctx, r.c.B().Set().Key(key).Value(result).Ex(keep).Build(), r.c.B().Del().Key(key+":lock").Build()) {
		if err := res.Error(); err != nil {
			return err
		}
	}
	return nil
}

func (r rueidisClient) batch(ctx context.Context, keys []string) error {
	args := make([]string, len(keys))
	for i := range args {
		args[i] = result
	}
	return r.c.Do(ctx, r.c.B().Evalsha().Sha1(r.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).Error()
}

// clients are both, on one server.
func clients(t *testing.T, srv *redistest.Server) map[string]client {
	t.Helper()
	g := redis.NewClient(&redis.Options{Addr: srv.Addr(), PoolSize: 32})
	t.Cleanup(func() { _ = g.Close() })
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	sha, err := g.ScriptLoad(t.Context(), script).Result()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]client{"go-redis": goRedis{g, sha}, "rueidis": rueidisClient{r, sha}}
}

// The compared clients must write the same data.
func TestClients_DoTheSame(t *testing.T) {
	srv := redistest.Start(t, redistest.Fast...)
	look := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	t.Cleanup(func() { _ = look.Close() })
	for name, c := range clients(t, srv) {
		if err := c.once(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for i := range 3 {
			keys = append(keys, name+strconv.Itoa(i))
		}
		if err := c.batch(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
		for _, k := range append(keys, name) {
			if got := look.Get(t.Context(), k).Val(); got != result {
				t.Errorf("%s: %s is %q", name, k, got)
			}
		}
		if ttl := look.TTL(t.Context(), name).Val(); ttl <= keep-time.Minute || ttl > keep {
			t.Errorf("%s: kept for %v", name, ttl)
		}
	}
	if n := look.DBSize(t.Context()).Val(); n != 8 {
		t.Errorf("%d keys, want 8: locks are left", n)
	}
}
