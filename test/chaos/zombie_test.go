package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// A process that is frozen past its lease, and wakes up after another has
// taken over, changes nothing; its handler's context was cancelled by its own
// clock before its settlement was refused.
func TestAFrozenOwnerIsRefusedWhenItWakes(t *testing.T) {
	const workers = 6
	rounds := 18 // a worker: 108 in all
	if testing.Short() {
		rounds = 3
	}
	path := filepath.Join(t.TempDir(), "chaos.db")
	g, st, err := open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()

	var refused, inLock atomic.Int32
	var wg sync.WaitGroup
	for i := range workers {
		w := startWorker(t, path)
		wg.Go(func() {
			for n := range rounds {
				freeze(t, g, w, fmt.Sprintf("%d/%d", i, n), &refused, &inLock)
			}
		})
	}
	wg.Wait()
	t.Logf("%d zombies refused; %d froze with the file's lock in hand and could not be replaced", refused.Load(), inLock.Load())
	if want := int32(workers * rounds); refused.Load()+inLock.Load() != want || refused.Load() < want*9/10 {
		t.Errorf("%d of %d zombies were refused", refused.Load(), want)
	}
}

// begin has the worker run a key, and returns once its handler runs. On a slow
// disk a claim may take longer than its lease, and is then given back before
// the handler starts: that is no zombie yet, so another key is tried.
func begin(t *testing.T, w *worker, key string) (string, uint64) {
	for try := range 20 {
		name := fmt.Sprintf("%s/%d", key, try)
		w.tell(t, name)
		line := w.hear(t)
		var fence uint64
		if _, err := fmt.Sscanf(line, "started %d", &fence); err == nil {
			return name, fence
		}
		t.Logf("%s: the worker %s", name, line)
	}
	t.Errorf("%s: the handler did not start in 20 tries", key)
	runtime.Goexit()
	return "", 0
}

func freeze(t *testing.T, g *semel.Guard, w *worker, key string, refused, inLock *atomic.Int32) {
	key, fence := begin(t, w, key)
	if err := w.signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
		return
	}
	c := call(key)
	c.Wait = 3 * time.Second
	res, err := g.Run(t.Context(), c, func(_ context.Context, x *semel.Execution) (semel.Outcome, error) {
		if x.Fence() <= fence || x.Attempt() != 2 {
			t.Errorf("%s: fence %d after %d, attempt %d", key, x.Fence(), fence, x.Attempt())
		}
		return semel.Outcome{Body: []byte("successor")}, nil
	})
	if serr := w.signal(syscall.SIGCONT); serr != nil {
		t.Error(serr)
	}
	w.tell(t, "wake up")
	end := w.hear(t)
	if errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrInProgress) {
		inLock.Add(1) // frozen in the middle of a renewal, which holds SQLite's only lock
		return
	}
	if err != nil || string(res.Body) != "successor" {
		t.Errorf("%s: the successor got %q, %v", key, res.Body, err)
		return
	}
	if !strings.HasPrefix(end, "ended cancelled=true refused=true") {
		t.Errorf("%s: the zombie %s", key, end)
		return
	}
	refused.Add(1)
	res, err = g.Run(t.Context(), call(key), nil)
	if err != nil || string(res.Body) != "successor" || !res.Replayed {
		t.Errorf("%s: a duplicate got %q, %v", key, res.Body, err)
	}
}
