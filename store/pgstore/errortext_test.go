package pgstore

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/semel-go/semel/store"
)

// A record keeps the beginning of an error that no handler should return: a long one, with
// bytes that the server refuses in a text.
func TestAtomic_HugeErrorText_RecordKeepsItsBeginning(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	huge := errors.New("too large: \xff\x00" + strings.Repeat("é", 1<<20))
	for _, repeated := range []bool{false, true} { // a repeated call replaces its record
		if _, err := Do(t.Context(), p.a, call("Do"), p.pay("Do", huge)); !errors.Is(err, huge) {
			t.Error(err)
		}
		w := newWorker(p)
		w.fail["batch"] = huge
		if ends := w.runAll(t.Context(), poll("batch", "other")); !errors.Is(ends[0].Err, huge) || ends[1].Err != nil {
			t.Errorf("the batch: %v, %v", ends[0].Err != nil, ends[1].Err)
		}
		for _, key := range []string{"Do", "batch"} {
			r, err := p.record(t, key)
			if err != nil || r.State != store.Released || !strings.HasPrefix(r.LastError, "too large: é") || len(r.LastError) > 510 || !utf8.ValidString(r.LastError) {
				t.Errorf("%s, repeated %v: the record is %v, with %d bytes of the error, %v", key, repeated, r.State, len(r.LastError), err)
			}
		}
	}
}
