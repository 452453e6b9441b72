package semelhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/logtest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

var update = flag.Bool("update", false, "write the golden files anew")

// refusal returns the answer to a problem as text.
func refusal(t *testing.T, o *Options, p *Problem) string {
	t.Helper()
	c, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	c.refuse(w, httptest.NewRequest(http.MethodPost, "/", nil), p)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", w.Code)
	_ = w.Header().Write(&b)
	b.WriteByte('\n')
	if err := json.Indent(&b, w.Body.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

func TestProblem_Documents_MatchGolden(t *testing.T) {
	var all strings.Builder
	for _, code := range []string{
		CodeKeyMissing, CodeKeyMalformed, CodeBodyUnreadable, CodePayloadMalformed, CodeTenantMissing, CodeReplayForbidden, CodeInProgress,
		CodeOutcomeUnknown, CodeLeaseLost, CodeReservationExpired, CodeBodyTooLarge, CodePayloadMismatch, CodeAttemptsExhausted, CodeFailed,
		CodePayloadUnverifiable, CodeRecordUnreadable, CodeUpgradeUnsupported, CodeAnswerMissing, CodeMisconfigured, CodeAttemptFailed, CodeStoreUnavailable, CodeSpoolUnavailable,
	} {
		p := problem(code, errors.New("canary"))
		if p.Status == 0 || p.Title == "" {
			t.Errorf("%s has no entry", code)
		}
		fmt.Fprintf(&all, "# %s\n%s\n", code, refusal(t, nil, p))
	}
	if n := strings.Count(all.String(), "# "); n != len(problems) {
		t.Errorf("%d codes are tested, there are %d", n, len(problems))
	}
	p := keyMalformed(errKeySeveral)
	fmt.Fprintf(&all, "# with DocsURL\n%s", refusal(t, &Options{DocsURL: "https://api.example.com/docs/idempotency"}, p))
	golden(t, "testdata/problems.golden", all.String())
	if strings.Contains(all.String(), "canary") {
		t.Error("the text of an error was sent")
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s; look at the difference, then run the test with -update:\n%s", path, got)
	}
}

func TestProblem_EachCode_IsDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for code, p := range problems {
		if line := fmt.Sprintf("%d  %s ", p.Status, code); !bytes.Contains(doc, []byte(line)) {
			t.Errorf("doc.go has no line %q", line)
		}
	}
}

func TestProblem_EachReason_HasCode(t *testing.T) {
	after := func(reason error, d time.Duration) error {
		return &semel.Error{Reason: reason, RetryAfter: d, Cause: errors.New("canary")}
	}
	running := func(d time.Duration) error {
		return &semel.Error{Reason: semel.ErrInProgress, RetryAfter: 29 * time.Second, Running: d}
	}
	plain, _ := (*Options)(nil).config()
	busy, _ := (&Options{BusyStatus: 429}).config()
	custom, _ := (&Options{Payload: func(*http.Request, io.Reader) (semel.Payload, error) { return semel.NoPayload(), nil }}).config()
	for name, c := range map[string]struct {
		c      *config
		err    error
		status int
		code   string
		after  string
	}{
		"busy":                 {plain, after(semel.ErrInProgress, 29*time.Second+1), 409, CodeInProgress, "30"},
		"busy, 30 s":           {plain, after(semel.ErrInProgress, 30*time.Second), 409, CodeInProgress, "30"},
		"busy, soon":           {plain, after(semel.ErrInProgress, time.Millisecond), 409, CodeInProgress, "1"},
		"busy, just begun":     {plain, running(time.Millisecond), 409, CodeInProgress, "1"},
		"busy for 9 s":         {plain, running(9 * time.Second), 409, CodeInProgress, "5"},
		"busy for 4 s":         {plain, running(4*time.Second + time.Millisecond), 409, CodeInProgress, "3"},
		"busy for an hour":     {plain, running(time.Hour), 409, CodeInProgress, "30"},
		"busy, unknown":        {plain, after(semel.ErrInProgress, 0), 409, CodeInProgress, "1"},
		"busy, 429":            {busy, after(semel.ErrInProgress, time.Second), 429, CodeInProgress, "1"},
		"released":             {plain, after(semel.ErrReleased, 0), 503, CodeAttemptFailed, "1"},
		"released, backoff":    {plain, after(semel.ErrReleased, time.Minute), 503, CodeAttemptFailed, "60"},
		"mismatch":             {plain, after(semel.ErrMismatch, 0), 422, CodePayloadMismatch, ""},
		"unverifiable":         {plain, after(semel.ErrUnverifiable, 0), 500, CodePayloadUnverifiable, ""},
		"parked":               {plain, after(semel.ErrParked, 0), 409, CodeOutcomeUnknown, ""},
		"expired":              {plain, after(semel.ErrExpired, 0), 410, CodeReservationExpired, ""},
		"lease lost":           {plain, after(semel.ErrLeaseLost, 0), 409, CodeLeaseLost, "1"},
		"unavailable":          {plain, after(semel.ErrUnavailable, 0), 503, CodeStoreUnavailable, "1"},
		"unreadable":           {plain, after(store.ErrCorrupt, 0), 500, CodeRecordUnreadable, ""},
		"invalid":              {plain, after(semel.ErrInvalid, 0), 500, CodeMisconfigured, ""},
		"invalid payload":      {custom, after(semel.ErrInvalid, 0), 400, CodePayloadMalformed, ""},
		"unknown reason":       {plain, after(errors.New("new"), 0), 500, CodeMisconfigured, ""},
		"unknown error":        {plain, errors.New("canary"), 500, CodeMisconfigured, ""},
		"failure":              {plain, &semel.Failure{Code: "declined", Message: "canary"}, 500, CodeFailed, ""},
		"exhausted":            {plain, &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: "canary"}, 500, CodeAttemptsExhausted, ""},
		"cause is not reason":  {plain, &semel.Error{Reason: semel.ErrParked, Cause: after(semel.ErrUnavailable, 0)}, 409, CodeOutcomeUnknown, ""},
		"wrapped by a runner":  {plain, fmt.Errorf("traced: %w", after(semel.ErrMismatch, 0)), 422, CodePayloadMismatch, ""},
		"protocol switch":      {plain, errUpgrade, 500, CodeUpgradeUnsupported, ""},
		"body: temporary file": {plain, nil, 503, CodeSpoolUnavailable, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem(CodeSpoolUnavailable, nil)
			if c.err != nil {
				p = c.c.problemOf(c.err)
			}
			w := httptest.NewRecorder()
			c.c.refuse(w, httptest.NewRequest(http.MethodPost, "/", nil), p)
			if w.Code != c.status || p.Code != c.code || w.Header().Get("Retry-After") != c.after {
				t.Errorf("got %d %s, Retry-After %q; want %d %s, %q", w.Code, p.Code, w.Header().Get("Retry-After"), c.status, c.code, c.after)
			}
			if strings.Contains(w.Body.String(), "canary") || strings.Contains(fmt.Sprint(w.Header()), "canary") {
				t.Error("the text of an error was sent")
			}
			if !errors.Is(p.Err, c.err) {
				t.Errorf("Problem.Err is %v", p.Err)
			}
		})
	}
}

func TestRefuse_Set_WritesRefusal(t *testing.T) {
	c, err := (&Options{Refuse: func(w http.ResponseWriter, r *http.Request, p Problem) {
		w.Header().Set("X-Code", p.Code)
		w.WriteHeader(p.Status + 1)
	}}).config()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	c.refuse(w, httptest.NewRequest(http.MethodPost, "/", nil), problem(CodeStoreUnavailable, nil))
	if w.Code != 504 || w.Header().Get("X-Code") != CodeStoreUnavailable || w.Header().Get("Retry-After") != "1" || w.Header().Get("Content-Type") != "" {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
}

type oneKey struct{}

func (oneKey) Current(context.Context) (string, []byte, error) {
	return "2026", bytes.Repeat([]byte{1}, 32), nil
}

func (oneKey) Key(context.Context, string) ([]byte, error) { return bytes.Repeat([]byte{1}, 32), nil }

// A repeat does not find the key that the server lacks, so the client is not told to repeat.
// The operator is told what to do.
func TestMiddleware_ResultEncryptedAndServerHasNoKey_500AndLogSaysWhy(t *testing.T) {
	out := logtest.Capture(t)
	st := memstore.New(nil)
	send := func(o *semel.Options) *httptest.ResponseRecorder {
		t.Helper()
		g, err := semel.New(st, o)
		if err != nil {
			t.Fatal(err)
		}
		once, err := Middleware(g, func(*http.Request) (string, error) { return "t", nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Pattern = "POST /"
		r.Header.Set("Idempotency-Key", "k")
		once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })).ServeHTTP(w, r)
		return w
	}
	if w := send(&semel.Options{Encryption: &encrypted.Cipher{Keys: oneKey{}}}); w.Code != http.StatusCreated {
		t.Fatal(w.Code, w.Body, out.String())
	}
	w := send(nil)
	if body := w.Body.String(); w.Code != http.StatusInternalServerError || w.Header().Get("Retry-After") != "" || !strings.Contains(body, CodeRecordUnreadable) || strings.Contains(body, "encrypt") {
		t.Errorf("%d, %v: %s; the log: %s", w.Code, w.Header(), body, out.String())
	}
	if !strings.Contains(out.String(), "--encryption-keys") {
		t.Errorf("the log has %q", out.String())
	}
}
