package pgkafka

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// The next owner learns which message is before the watermark, so that it can see
// whether the log still has it, unless somebody has changed the position.
func TestOwn_LastMessage_IsOfThePosition(t *testing.T) {
	t.Parallel()
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	last := LastMessage{LeaderEpoch: 4, Published: time.UnixMilli(1_764_000_000_123)}
	if err := w.Do(t.Context(), Span{First: 0, Next: 3, Last: last}, p.offsets(0, 3)); err != nil {
		t.Fatal(err)
	}
	if got := own(t, p.st, 0).Last(); got.LeaderEpoch != 4 || !got.Published.Equal(last.Published) {
		t.Errorf("the last message is %+v, want %+v", got, last)
	}
	if err := own(t, p.st, 0).Do(t.Context(), Span{First: 3, Next: 5}, p.offsets(3, 5)); err != nil {
		t.Fatal(err)
	}
	if got := own(t, p.st, 0).Last(); got != (LastMessage{}) {
		t.Errorf("after a span without a last message it is %+v", got)
	}
	if err := own(t, p.st, 0).Do(t.Context(), Span{First: 5, Next: 6, Last: last}, p.offsets(5, 6)); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "UPDATE "+pgwire.DatabaseOf(p.st).Schema+".semel_watermark SET next_offset = 2")
	if got := own(t, p.st, 0); got.Next() != 2 || got.Last() != (LastMessage{}) {
		t.Errorf("after the position was set back it is %d after %+v", got.Next(), got.Last())
	}
}
