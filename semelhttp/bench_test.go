package semelhttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// payment is a body of 62 bytes.
const payment = `{"account":"acc-17","amount":1099,"currency":"EUR","ref":"x1"}`

// pay is a handler with little work: it reads a payment and answers.
func pay(w http.ResponseWriter, r *http.Request) {
	var buf [128]byte
	n, err := io.ReadFull(r.Body, buf[:])
	if err != io.ErrUnexpectedEOF || n != len(payment) {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(created)
}

var (
	jsonType = []string{"application/json"}
	created  = []byte(`{"id":"pay-4711","status":"captured"}`)
)

// payments adds the operation of requests that no http.ServeMux has matched.
func payments(o *semelhttp.Options) *semelhttp.Options {
	var with semelhttp.Options
	if o != nil {
		with = *o
	}
	with.Operation = paymentsOperation
	return &with
}

func paymentsOperation(*http.Request) string { return "POST /payments" }

func byAccount(*http.Request) (string, error) {
	return "acc-17", nil
}

// nullWriter is a http.ResponseWriter without a network.
type nullWriter struct {
	h http.Header
	n int
}

func (w *nullWriter) Header() http.Header         { return w.h }
func (w *nullWriter) WriteHeader(int)             {}
func (w *nullWriter) Write(p []byte) (int, error) { w.n += len(p); return len(p), nil }

// onlyReader hides the other methods of a bytes.Reader.
type onlyReader struct{ r *bytes.Reader }

func (o onlyReader) Read(p []byte) (int, error) { return o.r.Read(p) }
func (o onlyReader) Close() error               { return nil }

func bench(b *testing.B, h http.Handler, newKeys bool) {
	req, err := http.NewRequest(http.MethodPost, "/payments", nil)
	if err != nil {
		b.Fatal(err)
	}
	key := []string{"8e03978e-40d5-43dd-bc93-6894a57f9324"}
	req.Header["Idempotency-Key"] = key
	req.Header["Content-Type"] = jsonType
	req.ContentLength = int64(len(payment))
	body := bytes.NewReader([]byte(payment))
	rc := io.ReadCloser(onlyReader{body})
	w := &nullWriter{h: http.Header{}}
	prefix := make([]byte, 0, 64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if newKeys {
			prefix = strconv.AppendInt(append(prefix[:0], "8e03978e-40d5-43dd-bc93-"...), int64(i), 10)
			key[0] = string(prefix)
		}
		body.Reset([]byte(payment))
		req.Body = rc
		clear(w.h)
		h.ServeHTTP(w, req)
	}
	if w.n == 0 {
		b.Fatal("no answer")
	}
}

func protected(tb testing.TB, h http.Handler, o *semelhttp.Options) http.Handler {
	tb.Helper()
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		tb.Fatal(err)
	}
	once, err := semelhttp.Middleware(g, byAccount, payments(o))
	if err != nil {
		tb.Fatal(err)
	}
	return once(h)
}

func BenchmarkBare(b *testing.B)      { bench(b, http.HandlerFunc(pay), true) }
func BenchmarkNewKey(b *testing.B)    { bench(b, protected(b, http.HandlerFunc(pay), nil), true) }
func BenchmarkDuplicate(b *testing.B) { bench(b, protected(b, http.HandlerFunc(pay), nil), false) }

// BenchmarkGuardAlone is the part of the Guard and the store in BenchmarkNewKey.
func BenchmarkGuardAlone(b *testing.B) {
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		b.Fatal(err)
	}
	var sum [32]byte
	o := store.Outcome{Code: 201, Header: []store.Header{{Name: "Content-Type", Value: jsonType[0]}}, Body: created}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := "8e03978e-40d5-43dd-bc93-" + strconv.Itoa(i)
		call := semel.Call{Operation: "POST /payments", Tenant: "acc-17", Key: key, Payload: semel.Digest("semelhttp/1", sum[:])}
		_, err := g.Run(b.Context(), call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) { return o, nil })
		if err != nil {
			b.Fatal(err)
		}
	}
}
