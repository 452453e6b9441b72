package importer

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

var (
	now      = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	defaults = &Defaults{Operation: "http", Retention: 24 * time.Hour}
)

func TestRecord_WholeRow_IsCompleted(t *testing.T) {
	r, err := defaults.record(Row{
		"operation": "pay", "tenant": "ann", "key": []byte("k1"), "status": int64(201), "body": `{"id":1}`, "content_type": "application/json", "location": "/p/1",
		"created": now.Add(-time.Hour), "expires": now.Add(time.Hour),
	}, now)
	want := store.Outcome{Code: 201, Body: []byte(`{"id":1}`), Header: []store.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "Location", Value: "/p/1"}}}
	if err != nil || r.Key != (store.Key{Operation: "pay", Tenant: "ann", Value: "k1"}) || r.State != store.Completed || !r.Outcome.Equal(want) {
		t.Errorf("%+v, %v", r, err)
	}
	if !r.Created.Equal(now.Add(-time.Hour)) || !r.Expires.Equal(now.Add(time.Hour)) || !r.Completed.Equal(r.Created) || !r.Updated.Equal(r.Created) {
		t.Errorf("the times are %v, %v, %v and %v", r.Created, r.Updated, r.Completed, r.Expires)
	}
	if d := store.Decide(&r, &store.Call{Fingerprint: store.Fingerprint{Alg: "semelhttp/2", Sum: "x"}}, now); d.Action != store.Replay {
		t.Errorf("a duplicate is decided as %v", d.Action)
	}
	if r.Fence != 1 {
		t.Errorf("the fence is %d; a later one could replace the record of a call", r.Fence)
	}
	again, err := defaults.record(Row{"operation": "pay", "tenant": "ann", "key": "k1", "status": "200"}, now)
	if err != nil || again.Owner != r.Owner || again.Fence != r.Fence || !again.Outcome.Gone || !again.Expires.Equal(now.Add(24*time.Hour)) {
		t.Errorf("a row with less: %+v, %v", again, err)
	}
}

func TestRecord_BadRow_NamesFieldAndReason(t *testing.T) {
	for want, row := range map[string]Row{
		"key: is empty":                                           {"status": int64(200)},
		"key: has 256 bytes":                                      {"key": strings.Repeat("k", 256), "status": int64(200)},
		"key: has a control character (0x0d)":                     {"key": "k\r", "status": int64(200)},
		"key: has a control character (0x00)":                     {"key": "k\x003", "status": int64(200)},
		"key: begins or ends with a blank":                        {"key": "8e03978e-40d5-43dd-bc93-6894a57f9324    ", "status": int64(200)},
		"write trim(…) AS key in the query":                       {"key": "\u00a0k", "status": int64(200)},
		"tenant: begins or ends with a blank":                     {"tenant": "ann ", "key": "k", "status": int64(200)},
		"operation: begins or ends with a blank":                  {"operation": " pay", "key": "k", "status": int64(200)},
		"tenant: has a control character (0x00)":                  {"tenant": semel.Shared, "key": "k", "status": int64(200)},
		"status: is missing (NULL or empty); it must be 200 to 5": {"key": "k"},
		"status: is missing (NULL":                                {"key": "k", "status": ""},
		"status: is 0; it must be 200 to 5":                       {"key": "k", "status": int64(0)},
		"status: is 102":                                          {"key": "k", "status": int64(102)},
		`status: "ok" is no whole number`:                         {"key": "k", "status": "ok"},
		"status: is no whole number":                              {"key": "k", "status": time.Now()},
		"created: ":                                               {"key": "k", "status": int64(200), "created": "yesterday"},
		"expires: ":                                               {"key": "k", "status": int64(200), "expires": []any{}},
		"body: has the type":                                      {"key": "k", "status": int64(200), "body": map[string]any{}},
		"operation":                                               {"key": "k", "status": int64(200), "operation": "a#b"},
	} {
		if _, err := defaults.record(row, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", row, err, want)
		}
	}
	if _, err := defaults.record(Row{"key": "k", "status": int64(200), "expires": now}, now); !errors.Is(err, errExpired) {
		t.Errorf("an expired row: %v", err)
	}
}

func TestTimeOf_EachForm_Read(t *testing.T) {
	want := time.Date(2026, 11, 28, 10, 0, 0, 500_000_000, time.UTC)
	for _, v := range []any{
		want, "2026-11-28T10:00:00.5Z", "2026-11-28 10:00:00.5", "2026-11-28 11:00:00.5+01", "2026-11-28 10:00:00.5+00:00", []byte("2026-11-28 10:00:00.5"),
		want.UnixMilli(), want.UnixMicro(), float64(want.UnixMilli()) / 1000, json.Number("1795860000.5"), "1795860000500",
	} {
		if got, err := timeOf(v, now); err != nil || !got.Equal(want) {
			t.Errorf("%T %v is %v, %v", v, v, got, err)
		}
	}
	if got, err := timeOf(nil, now); err != nil || !got.Equal(now) {
		t.Errorf("none: %v, %v", got, err)
	}
}

// Such a row once counted as expired, or was kept until the year 58000.
func TestRecord_TimeOutsideBounds_IsBadRow(t *testing.T) {
	bounds := "is no time from 2000 to 9999"
	for _, c := range []struct {
		expires any
		want    string
	}{
		{"infinity", "LEAST(…, now() + interval '1 year')"}, {"Infinity", "LEAST"}, {"+Inf", "LEAST"}, {math.Inf(1), "LEAST"},
		{"-infinity", bounds}, {"-inf", bounds}, {math.Inf(-1), bounds}, {"NaN", "NaN " + bounds}, {math.NaN(), bounds},
		{"1e30", bounds}, {1e30, bounds}, {"-1e30", bounds}, {"1e400", "is no time"}, {int64(math.MaxInt64), bounds}, {int64(math.MinInt64), bounds},
		{"20301231", "20301231 " + bounds}, {[]byte("20301231"), "20301231 " + bounds}, {int64(20301231), bounds}, {json.Number("20301231"), bounds}, {"0", bounds}, {int64(-1), bounds},
		{int64(253402300799), bounds}, // the end of 9999 in seconds is 1978 in milliseconds
		{now.UnixNano(), bounds},      // nanoseconds
		{"20301231235959", "20301231235959 " + bounds}, {int64(20301231235959), bounds}, {json.Number("20301231235959"), bounds}, {"20301231235959123", bounds},
		{time.Unix(20301231, 0), bounds}, // as the driver of SQLite reads it from a column DATETIME
		{"1999-12-31", bounds}, {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), bounds}, {time.Time{}, bounds},
	} {
		_, err := defaults.record(Row{"key": "k", "status": int64(200), "expires": c.expires}, now)
		if err == nil || errors.Is(err, errExpired) || !strings.Contains(err.Error(), "expires: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T %v: %v, want %q", c.expires, c.expires, err, c.want)
		}
	}
	for _, expires := range []any{int64(946684800), "2000-01-01", int64(946684800000)} {
		if _, err := defaults.record(Row{"key": "k", "status": int64(200), "expires": expires}, now); !errors.Is(err, errExpired) {
			t.Errorf("%v: %v, want expired", expires, err)
		}
	}
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, expires := range []any{last, "9999-12-31 23:59:59", last.UnixMicro()} {
		if r, err := defaults.record(Row{"key": "k", "status": int64(200), "expires": expires}, now); err != nil || !r.Expires.Equal(last) {
			t.Errorf("%v: %v, %v", expires, r.Expires, err)
		}
	}
}

func TestParseKeyName_Patterns_FindParts(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          map[string]string // nil: it does not fit
	}{
		{"idem:{tenant}:{key}", "idem:ann:a:b", map[string]string{"tenant": "ann", "key": "a:b"}},
		{"{operation}/{tenant}/{key}.v1", "pay/ann/k.v1", map[string]string{"operation": "pay", "tenant": "ann", "key": "k"}},
		{"{key}", "any\nthing", map[string]string{"key": "any\nthing"}},
		{"idem:{key}", "other:k", nil},
		{"idem:{key}", "idem:", nil},
		{"a.c{key}", "abck", nil},
	} {
		k, err := ParseKeyName(c.pattern)
		if err != nil {
			t.Fatalf("%s: %v", c.pattern, err)
		}
		row, err := k.parts(c.name)
		if (err != nil) != (c.want == nil) || len(row) != len(c.want) {
			t.Errorf("%s: %q is %v, %v", c.pattern, c.name, row, err)
		}
		for part, want := range c.want {
			if row[part] != want {
				t.Errorf("%s: %q has the %s %v, want %q", c.pattern, c.name, part, row[part], want)
			}
		}
	}
	for _, bad := range []string{"", "idem", "{tenant}", "{key}{key}", "{value}:{key}"} {
		if _, err := ParseKeyName(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestMembers_Document_KeepsNestedJSON(t *testing.T) {
	got, err := members([]byte(`{"status":201,"body":{"id": 1},"key":"a","none":null,"ok":true}`))
	if err != nil || got["status"] != json.Number("201") || string(got["body"].([]byte)) != `{"id": 1}` || got["key"] != "a" || got["none"] != nil || got["ok"] != json.Number("true") {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "[]", "7", `"text"`, "null", "{"} {
		if _, err := members([]byte(bad)); err == nil {
			t.Errorf("%q is an object", bad)
		}
	}
}

func TestRecord_HashKeys_KeyIsTheHashOfTheRow(t *testing.T) {
	d := *defaults
	d.HashKeys = []byte(strings.Repeat("s", 32))
	r, err := d.record(Row{"tenant": "ann", "key": "k1", "status": int64(201)}, now)
	if want := (store.Key{Operation: "http", Tenant: "ann", Value: "k1"}).Hashed(d.HashKeys); err != nil || r.Key != want {
		t.Errorf("the key is %+v, %v; want %+v", r.Key, err, want)
	}
}
