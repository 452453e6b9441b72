package redisstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store/redisstore/redistest"
)

// sound are settings without a finding.
func sound() *settings {
	return &settings{fsync: "always", info: map[string]string{
		"maxmemory_policy": "noeviction", "role": "master", "redis_version": "7.0.15", "aof_enabled": "1", "aof_last_write_status": "ok", "connected_slaves": "0",
	}}
}

func TestCheck_UnsafeSetting_IsNamed(t *testing.T) {
	for says, c := range map[string]struct {
		set   map[string]string
		fsync string
		o     Options
	}{
		"":                                  {},
		"maxmemory-policy is volatile-ttl":  {set: map[string]string{"maxmemory_policy": "volatile-ttl"}},
		"maxmemory-policy is missing":       {set: map[string]string{"maxmemory_policy": "-"}},
		"the server is a replica":           {set: map[string]string{"role": "slave"}},
		"redis_version is 6.2.1":            {set: map[string]string{"redis_version": "6.2.1"}},
		"Options.Fsync needs WAITAOF":       {o: Options{Fsync: true}},
		"appendonly is no":                  {set: map[string]string{"aof_enabled": "0"}},
		"appendfsync is everysec":           {fsync: "everysec"},
		"appendfsync is not known":          {fsync: "-"},
		"aof_last_write_status is err":      {set: map[string]string{"aof_last_write_status": "err"}},
		"Options.Fsync without appendonly":  {set: map[string]string{"aof_enabled": "0"}, o: Options{Fsync: true}},
		"connected_slaves is 0":             {o: Options{Replicas: 1}},
		"replicas without Options.Replicas": {set: map[string]string{"connected_slaves": "1"}},
		"min-replicas-to-write is 0":        {set: map[string]string{"connected_slaves": "1"}, o: Options{Replicas: 1}},
	} {
		is := sound()
		for name, value := range c.set {
			if is.info[name] = value; value == "-" {
				delete(is.info, name)
			}
		}
		if c.fsync != "" {
			is.fsync = strings.TrimPrefix(c.fsync, "-")
		}
		all := ""
		for _, f := range append(is.running(&c.o), is.durable(&c.o)...) {
			all += f.name + ": " + f.why + "\n"
		}
		if says == "" && all != "" || !strings.Contains(all, says) {
			t.Errorf("%+v: %q, want %q", c, all, says)
		}
	}
	evicts := sound()
	evicts.info["maxmemory_policy"] = "allkeys-lru"
	if fs := evicts.running(&Options{AllowEviction: true}); fs != nil {
		t.Errorf("what is allowed by name: %v", fs)
	}
	lagging := sound()
	lagging.fsync, lagging.info["redis_version"] = "everysec", "7.2.0"
	if fs := append(lagging.running(&Options{Fsync: true}), lagging.durable(&Options{Fsync: true})...); fs != nil {
		t.Errorf("everysec with Options.Fsync: %v", fs)
	}
}

func TestCheck_RealServer_ReadsItsSettings(t *testing.T) {
	t.Parallel()
	good := openOn(t, clientAt(t, redistest.Start(t, redistest.Durable...).URL()), nil)
	if err := good.Check(t.Context()); err != nil {
		t.Errorf("a durable server: %v", err)
	}
	bad := openOn(t, clientAt(t, redistest.Start(t, redistest.Fast...).URL()), nil)
	if err := bad.Check(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "appendonly is no") {
		t.Errorf("a fast server: %v", err)
	}
	claim(t, bad, "k") // which is no reason to refuse
	f := redistest.StartFailover(t, redistest.Fast...)
	replica := openOn(t, clientAt(t, f.Replica.URL()), nil)
	if _, err := replica.Claim(t.Context(), proposal("k")); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a claim on a replica: %v", err)
	}
	master := openOn(t, clientAt(t, f.Master.URL()), nil)
	if err := master.Check(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "min-replicas-to-write") {
		t.Errorf("a master with a replica: %v", err)
	}
	if err := clientAt(t, f.Master.URL()).ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := master.Check(t.Context()); strings.Contains(err.Error(), "min-replicas-to-write") {
		t.Errorf("a master that needs its replica: %v", err)
	}
}

// INFO is enough where CONFIG is not allowed.
func TestCheck_ConfigGetForbidden_SaysSo(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Durable...)
	if err := clientAt(t, srv.URL()).Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "+@all", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: "app", Password: "secret"})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	claim(t, s, "k")
	if err := s.Check(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "appendfsync is not known") {
		t.Errorf("%v", err)
	}
}
