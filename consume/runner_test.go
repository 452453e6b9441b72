package consume_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/internal/logtest"
	"github.com/semel-go/semel/store/memstore"
)

// wrapper is a Runner around another, like semelotel.Runner.
type wrapper struct{ inner semel.Runner }

func (w wrapper) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return w.inner.Run(ctx, call, fn)
}

func (w wrapper) Unwrap() semel.Runner { return w.inner }

// A wrapped Guard has the Retention of the Guard, and counts attempts as it does.
func TestNew_WrappedGuard_NeedsNeitherRetentionNorStarts(t *testing.T) {
	g, err := semel.New(memstore.New(nil), &semel.Options{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c, err := consume.New(wrapper{wrapper{g}}, byHeader, done, &consume.Options{MaxDeliveries: 3})
	if err != nil {
		t.Fatal(err)
	}
	late := keyed("k")
	late.Published = time.Now().Add(-2 * time.Hour)
	if d := c.Handle(t.Context(), late); d.Reason != driver.ReasonLate {
		t.Errorf("a message older than the Guard's Retention: %v %v", d.Action, d.Reason)
	}
	if _, err := consume.New(wrapper{unretained{}}, byHeader, done, &consume.Options{MaxDeliveries: 3}); err == nil || !strings.Contains(err.Error(), "Starts") || !strings.Contains(err.Error(), "Retention") {
		t.Errorf("a wrapped runner without both: %v", err)
	}
}

// unretained is a Runner without Retention.
type unretained struct{}

func (unretained) Run(context.Context, semel.Call, semel.Handler) (semel.Result, error) {
	return semel.Result{}, nil
}

// A CallFunc that rejects every message is configured wrongly. Whoever sets no Observe
// learns that from the log, too, and not from the error of Serve only. Not parallel,
// because it replaces the default logger.
func TestServe_NoObserve_MisconfigurationIsLogged(t *testing.T) {
	out := logtest.Capture(t)
	wrong := func(*consume.Message) (semel.Call, error) {
		return semel.Call{}, fmt.Errorf("the topic has no field id: %w", consume.ErrRejected)
	}
	c, err := consume.New(newGuard(t, nil, nil), wrong, done, &consume.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	m := keyed("secret key")
	m.Origin = consume.Origin{Topic: "orders", ID: "orders/3/17"}
	if err := c.Serve(t.Context(), newSource(m)); err == nil {
		t.Error("Serve goes on")
	}
	if !strings.Contains(out.String(), "level=WARN") || !strings.Contains(out.String(), "no field id") || !strings.Contains(out.String(), "orders/3/17") || strings.Contains(out.String(), "secret") {
		t.Errorf("the log is %q", out.String())
	}
}
