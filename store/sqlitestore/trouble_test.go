package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// replays fails the test if a completed key is not replayed.
func replays(t *testing.T, s *Store, value, body string) {
	t.Helper()
	f, err := s.Claim(context.Background(), proposal(value))
	if err != nil || f.Won || string(f.Record.Outcome.Body) != body {
		t.Errorf("a duplicate got body %q, won %v, error %v; want %q", f.Record.Outcome.Body, f.Won, err, body)
	}
}

// limit lets the file grow to so many pages; 0: no more than it has.
func limit(t *testing.T, s *Store, pages int) {
	t.Helper()
	if pages == 0 {
		if err := s.writer.conn.QueryRowContext(background, "PRAGMA page_count").Scan(&pages); err != nil {
			t.Fatal(err)
		}
	}
	db, err := s.pool(1, append(s.durable(), "max_page_count("+itoa(pages)+")")...)
	if err != nil {
		t.Fatal(err)
	}
	s.writer.disconnect(nil)
	if err := s.writer.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.writer.db = db
}

func TestFullDatabase_ChangesAreErrFull_ReplaysSucceed(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	complete(t, s, "done", "result")
	held, other := claim(t, s, "held"), claim(t, s, "other")
	limit(t, s, 0)
	ctx := context.Background()
	large := strings.Repeat("x", 1<<16)
	if err := s.Settle(ctx, held.Lease(), completion(large)); !errors.Is(err, ErrFull) {
		t.Fatalf("a settlement that does not fit: %v, want ErrFull", err)
	}
	if r := get(t, s, "held"); r.State != store.Processing {
		t.Errorf("after ErrFull the record is %v, want it unchanged", r.State)
	}
	if errs, err := s.Renew(ctx, []store.Lease{held.Lease()}, time.Minute); err != nil || errs[0] != nil {
		t.Errorf("a renewal, which needs no room: %v, %v", errs, err)
	}
	replays(t, s, "done", "result")
	errs := batch(s,
		func(k *lockedTx) error { c := completion("small"); return k.settle(background, other.Lease(), &c) },
		func(k *lockedTx) error { c := completion(large); return k.settle(background, held.Lease(), &c) })
	if errs[0] != nil || errs[1] == nil {
		t.Errorf("of a batch, what fits got %v, what does not got %v", errs[0], errs[1])
	}
	for i := 0; ; i++ {
		_, err := s.Claim(ctx, proposal("new"+itoa(i)))
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil || i > 1000 {
			t.Fatalf("claim %d of a full file: %v, want ErrFull in the end", i, err)
		}
	}
	replays(t, s, "done", "result")
	limit(t, s, 1<<30)
	if err := s.Settle(ctx, held.Lease(), completion(large)); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	replays(t, s, "held", large)
}

// A file system that is really full, such as a small tmpfs, needs a directory
// that the environment names.
func TestFullFileSystem_ChangesAreErrFull_ReplaysSucceed(t *testing.T) {
	dir := os.Getenv("SEMEL_TEST_FULL_DIR")
	if dir == "" {
		t.Skip("SEMEL_TEST_FULL_DIR names no directory on a small file system")
	}
	s := openAt(t, filepath.Join(dir, t.Name()+".db"), nil)
	complete(t, s, "done", "result")
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	_ = f.Close()
	refused := 0
	for i := range 2000 {
		if _, err := s.Claim(context.Background(), proposal("full"+itoa(i))); errors.Is(err, ErrFull) {
			refused++
		} else if err != nil {
			t.Errorf("claim %d: %v, want ErrFull", i, err)
		}
	}
	if refused == 0 {
		t.Error("no claim was refused")
	}
	replays(t, s, "done", "result")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	complete(t, s, "room again", "result")
}

func TestExplain_DriverError_SaysNextStep(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	_, readonly := s.reads.Exec("DELETE FROM semel_record")
	if err := explain("test", readonly); err == nil || !strings.Contains(err.Error(), "may not write") {
		t.Errorf("a read-only file: %v", err)
	}
	if explain("test", nil) != nil {
		t.Error("no error became one")
	}
	for _, finding := range []error{store.ErrNotFound, store.ErrLeaseLost, ErrClosed} {
		if err := explain("test", finding); err != finding {
			t.Errorf("%v became %v", finding, err)
		}
	}
}

func TestClose_LaterCalls_AreErrClosed(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	_, claimErr := s.Claim(ctx, proposal("a"))
	_, swapErr := s.Swap(ctx, r.Seen(), proposal("a"))
	_, renewErr := s.Renew(ctx, nil, time.Minute)
	_, getErr := s.Get(ctx, r.Key)
	_, sweepErr := s.Sweep(ctx, "", 1)
	var listErr error
	for _, listErr = range s.List(ctx, store.Filter{}) {
	}
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"Claim": claimErr, "Swap": swapErr, "Renew": renewErr, "Settle": s.Settle(ctx, r.Lease(), completion("x")), "Get": getErr,
		"Sweep": sweepErr, "List": listErr, "Migrate": s.Migrate(ctx), "Check": s.Check(ctx),
		"Atomic.Run": Once(ctx, a, call("b"), nothing),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed store: %v, want ErrClosed", what, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestClose_Concurrently_Returns(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := openNew(t, nil)
		claim(t, s, "connects")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close beside others: %v", err)
				}
			})
		}
		all.Wait()
	}
}

// stepping is a context that ends when it has been asked for its end so often.
type stepping struct {
	context.Context
	left atomic.Int64
	end  context.CancelFunc
}

func newStepping(t *testing.T, steps int) *stepping {
	ctx, cancel := context.WithCancel(t.Context())
	s := &stepping{Context: ctx, end: cancel}
	s.left.Store(int64(steps))
	return s
}

func (s *stepping) Done() <-chan struct{} {
	if s.left.Add(-1) < 0 {
		s.end()
	}
	return s.Context.Done()
}

// A context that ends, at whatever step, says nothing of the file.
func TestOpen_ContextEnds_IsNotErrForeign(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for what, f := range map[string]func(ctx context.Context) error{
		"Check":               s.Check,
		"Migrate":             s.Migrate,
		"Open":                func(ctx context.Context) error { return reopen(ctx, s.path, nil) },
		"Open with NoMigrate": func(ctx context.Context) error { return reopen(ctx, s.path, &Options{NoMigrate: true}) },
	} {
		for steps := range 100 {
			err := f(newStepping(t, steps))
			if err == nil {
				break
			}
			if steps == 99 || errors.Is(err, ErrForeign) || errors.Is(err, ErrSchema) || errors.Is(err, ErrUnsafe) {
				t.Errorf("%s with a context that ends after %d steps: %v", what, steps, err)
			}
		}
	}
}

func reopen(ctx context.Context, path string, o *Options) error {
	s, err := Open(ctx, path, o)
	if err == nil {
		err = s.Close()
	}
	return err
}
