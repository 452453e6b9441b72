package nearcache_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
)

// An erased record is in no part of the cache: neither in memory nor in the front. A
// process that has read it before does not bring it back into the front.
func TestErase_CachedRecord_IsForgottenHereAndInFront(t *testing.T) {
	t.Parallel()
	mem, front := memstore.New(nil), memstore.New(nil)
	o := &nearcache.Options{Front: front, FrontTimeout: time.Minute}
	here, other := newCache(t, mem, o), newCache(t, mem, o)
	f := complete(t, here, "k", time.Hour)
	if got := claim(t, other, "k"); got.Won || string(got.Record.Outcome.Body) != "kept" {
		t.Fatalf("another process: won %v, %+v", got.Won, got.Record)
	}
	inFront := func() (text string) {
		for f, err := range front.List(t.Context(), store.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%+v %s", f.Record, f.Record.Outcome.Body)
		}
		return text
	}
	if !strings.Contains(inFront(), "kept") {
		t.Fatal("the answer is not in the front, so the test would find nothing")
	}
	seen, err := here.Get(t.Context(), f.Record.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Erase(t.Context(), seen.Record.Seen()); err != nil {
		t.Fatal(err)
	}
	if text := inFront(); strings.Contains(text, "kept") {
		t.Errorf("the front still has %s", text)
	}
	if _, err := here.Get(t.Context(), f.Record.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get after Erase: error %v, want ErrNotFound", err)
	}
	_ = claim(t, other, "k") // it may still use its memory, for MaxAge
	if text := inFront(); strings.Contains(text, "kept") {
		t.Errorf("another process has brought the answer back: %s", text)
	}
	if next := claim(t, here, "k"); !next.Won || next.Record.Fence <= f.Record.Fence {
		t.Errorf("the next claim here: won %v with fence %d, want it won above %d", next.Won, next.Record.Fence, f.Record.Fence)
	}
}

func TestErase_StoreCannotErase_IsUnsupported(t *testing.T) {
	t.Parallel()
	mem := memstore.New(nil)
	c := newCache(t, struct{ store.Store }{mem}, nil)
	f := complete(t, c, "k", time.Hour)
	if err := c.Erase(t.Context(), f.Record.Seen()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Erase: error %v, want ErrUnsupported", err)
	}
}
