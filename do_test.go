package semel_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

func TestDo_FirstCaller_GetsWhatDuplicatesGet(t *testing.T) {
	type receipt struct {
		ID     string
		Hidden string `json:"-"`
	}
	g := guard(t, memstore.New(nil), nil)
	for i := range 2 {
		got, err := semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (receipt, error) {
			return receipt{"r1", "not encoded"}, nil
		})
		if err != nil || got != (receipt{ID: "r1"}) {
			t.Errorf("call %d: got %+v, %v", i, got, err)
		}
	}
}

func TestDo_ResultNotEncodable_IsDoneAndNotKept(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	runs := 0
	fn := func(context.Context, *semel.Execution) (chan int, error) { runs++; return make(chan int), nil }
	if _, err := semel.Do(t.Context(), g, ann("k"), fn); err == nil || !strings.Contains(err.Error(), `codec "json"`) {
		t.Errorf("first: got %v", err)
	}
	_, err := semel.Do(t.Context(), g, ann("k"), fn)
	wantErr(t, err, semel.ErrNotKept)
	if runs != 1 {
		t.Errorf("the handler ran %d times, want 1", runs)
	}
}

func TestDo_CodecsChanged_WriterDecodes(t *testing.T) {
	st := memstore.New(nil)
	old := guard(t, st, &semel.Options{Codecs: []semel.Codec{jsonCodec("v1")}})
	get := func(g *semel.Guard) (int, error) {
		return semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (int, error) { return 42, nil })
	}
	if got, err := get(old); err != nil || got != 42 {
		t.Fatal(got, err)
	}
	both := guard(t, st, &semel.Options{Codecs: []semel.Codec{jsonCodec("v2"), jsonCodec("v1")}})
	if got, err := get(both); err != nil || got != 42 {
		t.Errorf("a Guard with both codecs: got %v, %v; want 42", got, err)
	}
	if _, err := get(guard(t, st, nil)); err == nil || !strings.Contains(err.Error(), `"v1"`) {
		t.Errorf("a Guard without the codec: got error %v, want one that names \"v1\"", err)
	}
}

// jsonCodec is JSON under another name.
type jsonCodec string

func (c jsonCodec) Name() string { return string(c) }

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
