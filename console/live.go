package console

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// liveInterval is how often an open page is compared with the store.
const liveInterval = 2 * time.Second

// live sends an event when the store has another state than the page shows. The script then
// reads the page again. The address of the events has the state that the page shows, so no
// change is missed before the stream begins, or between two streams.
func (c *Console) live(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodHead {
			return
		}
		out := http.NewResponseController(w)
		// A server's limit for answers is for pages; this one has no end.
		_ = out.SetWriteDeadline(time.Time{}) // not every server has deadlines
		tick := time.NewTicker(liveInterval)
		defer tick.Stop()
		shown := r.URL.Query().Get("shown")
		// The first line makes the browser report that the connection stands.
		for line := ": ready\n\n"; ; line = ": still here\n\n" {
			if now := stateOf(p.read(r)); now != shown {
				shown, line = now, "event: changed\ndata: \n\n"
			}
			if _, err := fmt.Fprint(w, line); err != nil || out.Flush() != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	})
}

// stateOf is a hash of the data or the error that a page shows. Errors of one status are one
// state, because the text of an outage can differ each time.
func stateOf(data any, err error) string {
	if err != nil {
		return fmt.Sprintf("error-%d", problemOf(err).Status)
	}
	b, err := json.Marshal(data)
	if err != nil {
		return "error"
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:32]
}
