package semelkafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMetadata_Written_IsReadBack(t *testing.T) {
	id := [16]byte{1, 2, 3}
	at := LastMessage{LeaderEpoch: 7, Published: time.UnixMilli(1_764_000_000_123)}
	for name, c := range map[string]struct {
		text *string
		want commitMetadata
	}{
		"all parts":       {metadata(id, 9, commitMetadata{after: 5, last: at, partitions: 3}), commitMetadata{topicIDText(id), 5, at, 3}},
		"only the last":   {metadata([16]byte{}, 9, commitMetadata{after: 9, last: at}), commitMetadata{after: 9, last: at}},
		"only the id":     {metadata(id, 9, commitMetadata{after: 9, last: LastMessage{LeaderEpoch: 3}}), commitMetadata{topicID: topicIDText(id), after: 9}},
		"nothing":         {metadata([16]byte{}, 9, commitMetadata{after: 9}), commitMetadata{after: 9}},
		"none":            {nil, commitMetadata{after: 9}},
		"only partitions": {metadata([16]byte{}, 9, commitMetadata{after: 9, partitions: 12}), commitMetadata{after: 9, partitions: 12}},
		"another program": {kmsg.StringPtr("member-1;last=x@y;after=-3;last=5;partitions=-1"), commitMetadata{after: 9}},
	} {
		got := readMetadata(c.text, 9)
		if got.topicID != c.want.topicID || got.after != c.want.after || got.partitions != c.want.partitions || got.last.LeaderEpoch != c.want.last.LeaderEpoch || !got.last.Published.Equal(c.want.last.Published) {
			t.Errorf("%s: it is %+v, want %+v", name, got, c.want)
		}
	}
}
