package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// liveInterval is how often an open page is compared with the store.
const liveInterval = 2 * time.Second

// live sends an event when what the page shows has changed. The script then reads the
// page again.
func (c *Console) live(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		// A server's limit for answers is for pages; this one has no end.
		_ = out.SetWriteDeadline(time.Time{}) // not every server has deadlines
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(liveInterval)
		defer tick.Stop()
		shown := c.state(r.Context(), p, r)
		// The first line makes the browser report that the connection stands.
		for line := ": ready\n\n"; ; line = ": still here\n\n" {
			if now := c.state(r.Context(), p, r); now != shown {
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

// state is what a page shows, in a form that can be compared.
func (c *Console) state(ctx context.Context, p page, r *http.Request) string {
	data, err := p.data(ctx, r)
	if err != nil {
		return "error: " + err.Error()
	}
	b, err := json.Marshal(data)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}
