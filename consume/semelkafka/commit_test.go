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
		"all parts":       {metadata(id, 9, 5, at), commitMetadata{topicIDText(id), 5, at}},
		"only the last":   {metadata([16]byte{}, 9, 9, at), commitMetadata{"", 9, at}},
		"only the id":     {metadata(id, 9, 9, LastMessage{LeaderEpoch: 3}), commitMetadata{topicID: topicIDText(id), after: 9}},
		"nothing":         {metadata([16]byte{}, 9, 9, LastMessage{}), commitMetadata{after: 9}},
		"none":            {nil, commitMetadata{after: 9}},
		"another program": {kmsg.StringPtr("member-1;last=x@y;after=-3;last=5"), commitMetadata{after: 9}},
	} {
		got := readMetadata(c.text, 9)
		if got.topicID != c.want.topicID || got.after != c.want.after || got.last.LeaderEpoch != c.want.last.LeaderEpoch || !got.last.Published.Equal(c.want.last.Published) {
			t.Errorf("%s: it is %+v, want %+v", name, got, c.want)
		}
	}
}
