package console

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// state is the state of a record.
func (s *site) state(t *testing.T, k store.Key) store.State {
	t.Helper()
	f, err := s.store.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return f.Record.State
}

func payment(tenant, key string) store.Key {
	return store.Key{Operation: "POST /payments", Tenant: tenant, Value: key}
}

// press clicks a button with a text.
func press(text string) step {
	return chromedp.Click(fmt.Sprintf("//button[contains(., %q)]", text))
}

// open follows a link with a text.
func open(text string) step {
	return chromedp.Click(fmt.Sprintf("//main//a[contains(., %q)]", text))
}

func because(reason string) step {
	return chromedp.SendKeys("#reason", reason)
}

func TestConsole_EachForm_DoesWhatItSays(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	parked, other := payment("acct-301", "8e03978e-40d5-43dd-bc93-6894a57f9324"), payment("acct-117", "invoice-2026-1107")

	do(ctx, t, chromedp.Navigate(s.url), open("8e03978e"), because("not in the bank's ledger"), press("It did not happen"), shows("Resolved."))
	if got := s.state(t, parked); got != store.Released {
		t.Errorf("the first payment is %v", got)
	}
	do(ctx, t, chromedp.Navigate(s.url), open("invoice-2026"), because("ledger entry 4711"), chromedp.Click("summary"),
		chromedp.SetValue("#status", "201"), chromedp.SendKeys("#body", `{"payment":"p-9"}`), press("It happened"), shows("Resolved."), shows("p-9"))
	if got := s.state(t, other); got != store.Completed {
		t.Errorf("the second payment is %v", got)
	}
	do(ctx, t, chromedp.Navigate(s.url+"records?state=failed"), open("order-1841"), because("the customer has a new card"), press("Reopen"), shows("Reopened"))
	if got := s.state(t, payment("acct-301", "order-1841")); got != store.Released {
		t.Errorf("the failed payment is %v", got)
	}
	do(ctx, t, chromedp.Navigate(s.url+"sagas"), open("order-1842"), because("the bank has it"), chromedp.Click("summary"),
		chromedp.SetValue("#result", `"p-10"`), press("Skip the step"), shows("Decided"))
	if got := s.state(t, saga.Key("order", "acct-117", "order-1842")); got != store.Released {
		t.Errorf("the saga is %v", got)
	}
	do(ctx, t, chromedp.Navigate(s.url+"outbox"), chromedp.Click("tbody a"), because("the webhook is back"), press("Send it again"), shows("Due at once"))
	do(ctx, t, chromedp.Navigate(s.url+"message?position=1"), because("the customer has left"), press("Drop it"), shows("Dropped"))
	stats, err := s.box.Stats(t.Context())
	if err != nil || stats.Quarantined != 0 || stats.StoppedKeys != 0 {
		t.Errorf("the outbox has %+v, %v", stats, err)
	}
}

func TestConsole_StepDidNotHappen_SagaGoesOn(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	do(ctx, t, chromedp.Navigate(s.url), open("order-1842"), because("the bank has no such payment"), chromedp.Click("#doubt-0"), press("Go on"), shows("Decided"))
	if got := s.state(t, saga.Key("order", "acct-117", "order-1842")); got != store.Released {
		t.Errorf("the saga is %v", got)
	}
}

// focus is the text of the element that the keyboard is at.
const focus = `(() => { const e = document.activeElement; return (e.tagName + " " + (e.id || e.innerText || e.value || "")).slice(0, 80) })()`

// tabTo presses the tab key until the keyboard is at an element with a text.
func tabTo(text string) step {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		for range 60 {
			if _, err := chromedp.KeyEvent(kb.Tab)(ctx, target); err != nil {
				return chromedp.Void{}, err
			}
			at, err := chromedp.Evaluate[string](focus)(ctx, target)
			if err != nil {
				return chromedp.Void{}, err
			}
			if strings.Contains(at, text) {
				return chromedp.Void{}, nil
			}
		}
		return chromedp.Void{}, fmt.Errorf("the tab key does not lead to %q", text)
	}
}

func TestConsole_KeyboardOnly_ResolvesCall(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	do(ctx, t, chromedp.Navigate(s.url), tabTo("8e03978e"), chromedp.KeyEvent(kb.Enter), shows("Facts"))
	do(ctx, t, tabTo("INPUT reason"), chromedp.KeyEvent("not in the ledger"), chromedp.KeyEvent(kb.Enter) /* it decides nothing */, tabTo("BUTTON It did not happen"), chromedp.KeyEvent(kb.Enter), shows("Resolved."))
	if got := s.state(t, payment("acct-301", "8e03978e-40d5-43dd-bc93-6894a57f9324")); got != store.Released {
		t.Errorf("the payment is %v", got)
	}
}
