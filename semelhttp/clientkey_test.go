package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

func TestTransport_KeySources_InOrder(t *testing.T) {
	send := func(t *testing.T, o *semelhttp.TransportOptions, method string, ctx context.Context, header string) (*scriptedServer, error) {
		s := &scriptedServer{lines: []any{"200"}}
		r, err := http.NewRequestWithContext(ctx, method, "http://example.com/", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			r.Header.Set("Idempotency-Key", header)
		}
		resp, err := newClient(t, s, o).Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		if header == "" && r.Header.Get("Idempotency-Key") != "" {
			t.Error("the caller's request was changed")
		}
		return s, err
	}
	bg := t.Context()
	for name, c := range map[string]struct {
		o      *semelhttp.TransportOptions
		method string
		ctx    context.Context
		header string
		want   string // "": no key; "uuid": a new one
	}{
		"new":          {nil, "POST", bg, "", "uuid"},
		"patch":        {nil, "PATCH", bg, "", "uuid"},
		"get":          {nil, "GET", bg, "", ""},
		"put":          {nil, "PUT", bg, "", ""},
		"put, asked":   {&semelhttp.TransportOptions{Methods: []string{"PUT"}}, "PUT", bg, "", "uuid"},
		"context":      {nil, "POST", semelhttp.WithKey(bg, `a"b`), "", `"a\"b"`},
		"bare":         {&semelhttp.TransportOptions{Bare: true}, "POST", semelhttp.WithKey(bg, "a"), "", "a"},
		"header":       {nil, "POST", semelhttp.WithKey(bg, "a"), "own", "own"},
		"header, put":  {nil, "PUT", bg, "own", "own"},
		"get, context": {nil, "GET", semelhttp.WithKey(bg, "a"), "", ""},
	} {
		s, err := send(t, c.o, c.method, c.ctx, c.header)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := strings.Join(s.attempts[0].key, ", ")
		if got != c.want && !(c.want == "uuid" && uuid.MatchString(got)) {
			t.Errorf("%s: the key is %q, want %q", name, got, c.want)
		}
	}
	for name, key := range map[string]string{"empty": "", "long": strings.Repeat("k", 256), "control": "a\nb", "not ASCII": "ü"} {
		if s, err := send(t, nil, "POST", semelhttp.WithKey(bg, key), ""); err == nil || len(s.attempts) > 0 {
			t.Errorf("%s: a wrong key was sent", name)
		}
	}
	g := newGuard(t, nil, nil)
	call := semel.Call{Operation: "op", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}
	err := semel.Once(bg, g, call, func(ctx context.Context, x *semel.Execution) error {
		if s, err := send(t, nil, "POST", ctx, ""); !errors.Is(err, semelhttp.ErrNoKey) || len(s.attempts) > 0 {
			t.Errorf("inside a run, without a key: %v", err)
		}
		key := x.DownstreamKey("webhook")
		if s, err := send(t, nil, "POST", semelhttp.WithKey(ctx, key), ""); err != nil || s.attempts[0].key[0] != `"`+key+`"` {
			t.Errorf("inside a run, with a key: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A new key starts with its time, so that a server's index of keys grows at its end.
func TestTransport_NewKeys_AreOrderedByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := ""
		for range 100 {
			s := &scriptedServer{lines: []any{"200"}, start: time.Now()}
			resp, err := newClient(t, s, nil).Post("http://example.com/pay", "text/plain", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			key := s.attempts[0].key[0]
			if ms := time.Now().UnixMilli(); !uuid.MatchString(key) || strings.ReplaceAll(key[1:14], "-", "") != fmt.Sprintf("%012x", ms) {
				t.Fatalf("at %d ms the key is %s", ms, key)
			}
			if key <= last {
				t.Fatalf("%s comes behind %s", key, last)
			}
			last = key
			time.Sleep(time.Millisecond)
		}
	})
}
