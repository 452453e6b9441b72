package semelhttp

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

func TestOptions_Nil_HasDefaults(t *testing.T) {
	for name, o := range map[string]*Options{"nil": nil, "zero": {}} {
		c, err := o.config()
		if err != nil {
			t.Fatal(name, err)
		}
		for field, v := range map[string]struct{ got, want any }{
			"Methods":     {c.Methods, []string{"POST", "PATCH"}},
			"KeyHeaders":  {c.KeyHeaders, []string{"Idempotency-Key"}},
			"MaxBody":     {c.MaxBody, int64(10 << 20)},
			"MaxResponse": {c.MaxResponse, 1 << 20},
			"BusyStatus":  {c.BusyStatus, 409},
			"Wait":        {c.Wait, time.Duration(0)},
			"replayable":  {len(c.replayable), 26},
		} {
			if !reflect.DeepEqual(v.got, v.want) {
				t.Errorf("%s options: %s is %v, want %v", name, field, v.got, v.want)
			}
		}
	}
}

func TestOptions_SeveralWrong_AllReported(t *testing.T) {
	o := &Options{
		Methods: []string{"PO ST"}, KeyHeaders: []string{"a b", "X-Key", "x-key"}, ReplayHeaders: []string{""}, FingerprintHeaders: []string{"a b"}, RefusalOrigins: []string{"shop.example"},
		MaxBody: -1, MaxResponse: -1, Wait: -1, BusyStatus: 500, DocsURL: "http://a\nb",
	}
	_, err := Middleware(nil, nil, o)
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{
		"Methods[0]", "KeyHeaders[0]", "KeyHeaders[2]", "ReplayHeaders[0]", "FingerprintHeaders[0]", "RefusalOrigins[0]", "MaxBody", "MaxResponse", "Wait", "BusyStatus", "DocsURL", "tenant: is nil", "run: is nil",
	} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}

func TestMiddleware_NilArguments_AreErrors(t *testing.T) {
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Middleware(g, nil, nil); err == nil {
		t.Error("Middleware took a nil tenant")
	}
	fn := func(http.ResponseWriter, *http.Request, semel.Ticket) {}
	if _, err := Accept(g, nil, fn, nil); err == nil {
		t.Error("Accept took a nil tenant")
	}
	tenant := func(*http.Request) (string, error) { return semel.Shared, nil }
	for name, f := range map[string]func() error{
		"a nil guard": func() error { _, err := Accept(nil, tenant, fn, nil); return err },
		"a nil fn":    func() error { _, err := Accept(g, tenant, nil, nil); return err },
		"Optional":    func() error { _, err := Accept(g, tenant, fn, &Options{Optional: true}); return err },
	} {
		if f() == nil {
			t.Errorf("Accept took %s", name)
		}
	}
}

func TestTransportOptions_NilAndWrong_DefaultsAndErrors(t *testing.T) {
	tr, err := NewTransport(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := tr.opt
	if tr.base != http.DefaultTransport || o.MaxAttempts != 4 || o.Backoff != 100*time.Millisecond || o.MaxBackoff != 10*time.Second ||
		o.MaxRetryAfter != time.Minute || o.MaxBody != 1<<20 || o.KeyHeader != "Idempotency-Key" || !reflect.DeepEqual(o.Methods, []string{"POST", "PATCH"}) {
		t.Errorf("the defaults are %+v", o)
	}
	_, err = NewTransport(nil, &TransportOptions{
		Methods: []string{""}, KeyHeader: "a b", MaxAttempts: -1, Backoff: -1, MaxBackoff: -2, MaxRetryAfter: -1, MaxBody: -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"Methods[0]", "KeyHeader", "MaxAttempts", "Backoff", "MaxBackoff", "MaxRetryAfter", "MaxBody"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}
