package deliver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/memstore"
)

// A member has left messages in doubt. Without --reconcile-wait each goes to the quarantine
// after one question. A message that comes while others ask has had none, and stays.
func TestServe_OthersDoubtsWithoutWait_EachIsAskedAbout(t *testing.T) {
	const messages = 12
	var mu sync.Mutex
	asked := map[string]int{}
	use := reconcileHook(t, func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Key string `json:"key"`
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		mu.Lock()
		asked[q.Key]++
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"happened":null}`)
	})
	e, b, st := newEndpoint(t, doubtful), newBroker(), memstore.New(nil)
	for n := range messages {
		b.publish(fmt.Sprint("doubt", n), "", "x")
	}
	first := serve(t, st, b, e.URL, func(o *Options) {
		use(o)
		o.Concurrency, o.InFlight, o.Drain = 1, messages, time.Millisecond
	})
	eventually(t, "the messages are in doubt", func() bool { return len(e.requests()) >= messages })
	_ = first.stop()
	mu.Lock()
	clear(asked)
	mu.Unlock()
	serve(t, st, b, e.URL, func(o *Options) {
		use(o)
		o.ReconcileWait, o.Concurrency, o.InFlight = 0, 1, messages
	})
	b.settled(t)
	mu.Lock()
	defer mu.Unlock()
	if got := b.letters(driver.Quarantine); len(got) != messages || len(asked) != messages {
		t.Errorf("%d messages in the quarantine, and %d were asked about; want %d", len(got), len(asked), messages)
	}
}
