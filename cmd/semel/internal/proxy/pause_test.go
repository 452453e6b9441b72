package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
)

// The server notices that a client has hung up only after it has read the body.
func TestPause_ClientHangsUp_Ends(t *testing.T) {
	p := &Proxy{Parts: Parts{Config: &config.Config{RefusalPause: time.Hour}}}
	for name, body := range map[string]string{"NoBody": "", "SmallBody": "{}", "LargestBody": strings.Repeat("x", smallBody)} {
		t.Run(name, func(t *testing.T) {
			ctx, hangUp := context.WithCancel(t.Context())
			ended := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				defer close(ended)
				hangUp()
				if p.pause(r) {
					t.Error("the client is thought to wait")
				}
			}))
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if res, err := http.DefaultClient.Do(r); err == nil {
				_ = res.Body.Close()
				t.Errorf("answered %s", res.Status)
			}
			select {
			case <-ended:
				server.Close()
			case <-time.After(time.Minute):
				t.Error("the pause goes on")
			}
		})
	}
}
