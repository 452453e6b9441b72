package kafkatest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
)

// What is done is committed before its partition is another's, who would begin
// with it again; and what is committed says in which topic.
func TestWhatIsDoneIsCommittedBeforeItIsHandedOver(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		for p := range int32(partitions) {
			b.to(t, p, msg(fmt.Sprint("done", p), ""))
		}
		rarely := func(o *semelkafka.Options) { o.CommitEvery = time.Minute }
		first, second := b.source(t, rarely), b.source(t, rarely)
		for _, s := range []*semelkafka.Source{first, second} {
			if _, err := s.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range take(t, first, partitions) {
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for p := range int32(partitions) {
			b.to(t, p, msg(fmt.Sprint("next", p), ""))
		}
		var ds []consume.Delivery
		until(t, "some with the second", func() bool {
			_, _ = first.Next(t.Context(), 0) // it takes part in the rebalance
			more, err := second.Next(t.Context(), 10)
			ds = append(ds, more...)
			return len(ds) > 0 && err == nil
		})
		for _, d := range ds {
			if m := d.Message(); !strings.HasPrefix(string(m.Body), "next") {
				t.Errorf("%q was done before it was handed over, and comes again", m.Body)
			}
			if err := d.Nak(t.Context(), 0); err != nil { // else Close waits for it
				t.Error(err)
			}
		}
		done, err := b.adm.FetchOffsets(t.Context(), b.name)
		if err != nil {
			t.Fatal(err)
		}
		at, ok := done.Lookup(b.name, ds[0].Message().Origin.Partition)
		id, _, _ := strings.Cut(ds[0].Message().Origin.ID, "/")
		if !ok || at.At != 1 || at.Metadata != "semel-topic-id="+id {
			t.Errorf("committed is %+v, want offset 1 of topic %s", at.Offset, id)
		}
	})
}
