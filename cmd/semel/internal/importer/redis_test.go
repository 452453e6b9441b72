package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

func redisClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func keyName(t *testing.T, pattern string) *KeyName {
	t.Helper()
	name, err := ParseKeyName(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRedis_Keys_AreRows(t *testing.T) {
	client := redisClient(t, redistest.URL(t))
	ctx := t.Context()
	for _, err := range []error{
		client.Set(ctx, "idem:ann:json", `{"code":201,"response":{"id":1},"extra":[1]}`, time.Hour).Err(),
		client.HSet(ctx, "idem:ann:hash", "code", "409", "response", "no funds", "content_type", "text/plain").Err(),
		client.Set(ctx, "idem:ann:text", "processing", 0).Err(),
		client.RPush(ctx, "idem:ann:list", "x").Err(),
		client.HSet(ctx, "idem:ann:no-expiry", "code", "200", "expires", "").Err(),
		client.Expire(ctx, "idem:ann:no-expiry", time.Hour).Err(),
		client.Set(ctx, "other:ann:k", "{}", 0).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	name := keyName(t, "idem:{tenant}:{key}")
	source := &Redis{Client: client, Match: "idem:*", Name: name, Value: ValueJSON, Rename: map[string]string{"code": "status", "response": "body"}}
	st := memstore.New(nil)
	var bad []string
	stats, err := Run(ctx, source.Rows, st, &Options{Defaults: *defaults, Bad: func(_ int64, _ store.Key, err error) { bad = append(bad, err.Error()) }})
	if want := (Stats{Read: 5, Imported: 3, Bad: 2}); err != nil || stats != want {
		t.Errorf("%+v, %q, %v", stats, bad, err)
	}
	slices.Sort(bad)
	if len(bad) != 2 || !strings.Contains(bad[0], "neither a string nor a hash") || !strings.Contains(bad[1], "no JSON object") {
		t.Errorf("bad are %q", bad)
	}
	k := store.Key{Operation: "http", Tenant: "ann", Value: "json"}
	if r := get(t, st, k); r.Outcome.Code != 201 || string(r.Outcome.Body) != `{"id":1}` || time.Until(r.Expires) > time.Hour || time.Until(r.Expires) < 50*time.Minute {
		t.Errorf("%+v", r)
	}
	k.Value = "hash"
	if r := get(t, st, k); r.Outcome.Code != 409 || string(r.Outcome.Body) != "no funds" || len(r.Outcome.Header) != 1 || time.Until(r.Expires) < 23*time.Hour {
		t.Errorf("%+v", r)
	}
	k.Value = "no-expiry"
	if r := get(t, st, k); time.Until(r.Expires) > time.Hour {
		t.Errorf("an empty field hides the time to live: %v", r.Expires)
	}
	for value, gone := range map[RedisValue]bool{ValueBody: false, ValueNone: true} {
		row, err := (&Redis{Name: name, Value: value}).row("idem:ann:text", client.Get(ctx, "idem:ann:text"))
		if _, ok := row["body"]; err != nil || ok == gone {
			t.Errorf("--value %s: %v, %v", value, row, err)
		}
	}
}

// A node has some of a cluster's keys. The others would run again.
func TestRedis_NodeOfCluster_IsRefused(t *testing.T) {
	node := redistest.Start(t, "--cluster-enabled", "yes")
	source := &Redis{Client: redisClient(t, node.URL()), Match: "*", Name: keyName(t, "{key}")}
	if _, _, err := Source(source.Rows).Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "Redis Cluster") || !strings.Contains(err.Error(), "--rdb dump.rdb") {
		t.Errorf("%v", err)
	}
}

func TestRedis_UserMayNotAskForCluster_IsRefused(t *testing.T) {
	server := redistest.Start(t)
	if err := redisClient(t, server.URL()).Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">p", "~*", "+@read").Err(); err != nil {
		t.Fatal(err)
	}
	source := &Redis{Client: redisClient(t, strings.Replace(server.URL(), "//", "//reader:p@", 1)), Match: "*", Name: keyName(t, "{key}")}
	if _, _, err := Source(source.Rows).Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "ACL SETUSER reader +info") {
		t.Errorf("%v", err)
	}
}

func TestRedisRow_NameAndValueDiffer_IsBadRow(t *testing.T) {
	r := &Redis{Name: keyName(t, "idem:{tenant}:{key}"), Value: ValueJSON, Rename: map[string]string{"code": "status", "owner": "tenant"}}
	for _, c := range []struct{ value, want string }{ // want: in the error; empty if there is none
		{`{"code":201}`, ""},
		{`{"code":201,"owner":"7","key":"k1"}`, ""},
		{`{"code":201,"owner":7}`, ""},
		{`{"code":201,"owner":null,"key":""}`, ""},
		{`{"code":201,"tenant":"is not read, because --field names another"}`, ""},
		{`{"code":201,"status":"is not read, too"}`, ""},
		{`{"owner":"8"}`, "tenant: "},
		{`{"owner":{"id":7}}`, "tenant: "},
		{`{"key":"canary"}`, "key: the name of the key in Redis and the value differ"},
	} {
		row, err := r.row("idem:7:k1", redis.NewStringResult(c.value, nil))
		if (c.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%s: %v, want %q", c.value, err, c.want)
		}
		if err == nil && (row["tenant"] != "7" || row["key"] != "k1" || fmt.Sprint(row["status"]) != "201") {
			t.Errorf("%s: %v", c.value, row)
		}
	}
}

// A name may be personal data. So it stands beside the reason, and not in it.
func TestRedis_BadRow_NameIsNotInReason(t *testing.T) {
	client := redisClient(t, redistest.URL(t))
	for _, name := range []string{"secret:canary:k1", "secret:canary"} {
		if err := client.Set(t.Context(), name, "no object", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	source := &Redis{Client: client, Match: "secret:*", Name: keyName(t, "secret:{tenant}:{key}"), Value: ValueJSON}
	seen := []string{}
	for _, err := range source.Rows(t.Context()) {
		e, ok := errors.AsType[*RowError](err)
		if !ok || strings.Contains(e.Error(), "canary") {
			t.Fatalf("%v", err)
		}
		seen = append(seen, e.Name)
	}
	if slices.Sort(seen); !slices.Equal(seen, []string{"secret:canary", "secret:canary:k1"}) {
		t.Errorf("%q", seen)
	}
}
