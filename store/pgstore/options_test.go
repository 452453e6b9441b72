package pgstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestOptions_Invalid_Named(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"Schema": {Schema: strings.Repeat("x", 64)}, "LockTimeout": {LockTimeout: -1}, "Connections": {Connections: -1},
		"Flushers": {Flushers: 5}, "MaxBatch": {MaxBatch: -1}, "MaxIdleTx": {MaxIdleTx: time.Microsecond},
	} {
		if _, err := Open(t.Context(), "postgres://127.0.0.1:1/x", &o); err == nil || !strings.Contains(err.Error(), "Options."+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if o, err := (*Options)(nil).withDefaults(); err != nil || o.Schema != "semel" || o.Flushers != 4 || o.Connections != 12 {
		t.Errorf("defaults are %+v, %v", o, err)
	}
	if o, err := (&Options{Connections: 1}).withDefaults(); err != nil || o.Flushers != 1 {
		t.Errorf("with one connection they are %+v, %v", o, err)
	}
}

func TestOpen_Fails_HidesPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://ann:secret@127.0.0.1:1/x?connect_timeout=1", "postgres://ann:sec%ret@127.0.0.1:x/x"} {
		if _, err := Open(t.Context(), url, nil); err == nil || strings.Contains(err.Error(), "sec") && strings.Contains(err.Error(), "ret@") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := New(t.Context(), nil, nil); err == nil {
		t.Error("a nil pool was taken")
	}
}

func TestOpen_NoConnection_CauseOnceAndNextStep(t *testing.T) {
	t.Parallel()
	c, err := pgx.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	server := fmt.Sprintf("%s:%d", c.Host, c.Port)
	for url, want := range map[string][2]string{
		"postgres://" + c.User + "@" + server + "/absent": {`database "absent" does not exist`, "createdb"},
		"postgres://absent@" + server + "/" + c.Database:  {`role "absent" does not exist`, "createuser"},
		"postgres://127.0.0.1:1/x":                        {"connection refused", "pg_isready -h 127.0.0.1 -p 1"},
	} {
		_, err := Open(t.Context(), url, nil)
		if err == nil || strings.Count(err.Error(), want[0]) != 1 || !strings.Contains(err.Error(), want[1]) || strings.Contains(err.Error(), "tls error") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func TestStore_Closed_ErrClosed(t *testing.T) {
	t.Parallel()
	pgtest.URL(t)
	s := openNew(t, nil)
	r := claim(t, s, "k")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	ctx := t.Context()
	_, claimErr := s.Claim(ctx, proposal("k"))
	_, swapErr := s.Swap(ctx, r.Seen(), proposal("k"))
	_, renewErr := s.Renew(ctx, []store.Lease{r.Lease()}, time.Minute)
	_, getErr := s.Get(ctx, testKey("k"))
	_, sweepErr := s.Sweep(ctx, "", 1)
	for name, err := range map[string]error{
		"Claim": claimErr, "Swap": swapErr, "Renew": renewErr, "Get": getErr, "Sweep": sweepErr,
		"Settle": s.Settle(ctx, r.Lease(), completion("x")), "Check": s.Check(ctx), "Migrate": s.Migrate(ctx),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
	for _, err := range s.List(ctx, store.Filter{}) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("List: %v, want ErrClosed", err)
		}
	}
}

func TestErrors_SayNextStep(t *testing.T) {
	t.Parallel()
	for c, want := range map[string]error{pgwire.LockNotAvailable: ErrBusy, pgwire.DiskFull: ErrFull, pgwire.UndefinedTable: ErrSchema} {
		err := pgwire.Explain("claim", fmt.Errorf("send: %w", &pgconn.PgError{Code: c}))
		var e *pgconn.PgError
		if !errors.Is(err, want) || !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "pgstore: claim: ") {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, err := range []error{store.ErrNotFound, store.ErrLeaseLost, ErrClosed, nil} {
		if got := pgwire.Explain("claim", err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestSweep_ForeignCursor_Refused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for _, c := range []store.Cursor{"x", "7", "(1,2", "(-1,0)", "(1,70000)", "(1,2)x"} {
		if _, err := s.Sweep(t.Context(), c, 1); err == nil || !strings.Contains(err.Error(), "cursor") {
			t.Errorf("%q: %v", c, err)
		}
	}
}
