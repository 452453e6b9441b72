package console

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

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

// hand is a way to use a page.
type hand struct {
	follow func(text string) step // a link of a list
	write  func(field, text string) step
	tick   func(field string) step
	unfold func() step // the part of a form that is closed at first
	press  func(button string) step
}

// hands are the ways of operators. A field is named by its tag and its id.
var hands = map[string]hand{
	"mouse": {
		follow: open,
		write:  func(field, text string) step { return chromedp.SendKeys(selector(field), text) },
		tick:   func(field string) step { return chromedp.Click(selector(field)) },
		unfold: func() step { return chromedp.Click("summary") },
		press:  press,
	},
	"keyboard": {
		follow: func(text string) step { return both(tabTo("A "+text), chromedp.KeyEvent(kb.Enter)) },
		write:  func(field, text string) step { return both(tabTo(field), chromedp.KeyEvent(text)) },
		tick:   func(field string) step { return both(tabTo(field), chromedp.KeyEvent(" ")) },
		unfold: func() step { return both(tabTo("SUMMARY"), chromedp.KeyEvent(kb.Enter)) },
		press:  func(button string) step { return both(tabTo("BUTTON "+button), chromedp.KeyEvent(kb.Enter)) },
	},
}

// selector finds a field by its tag and its id, such as "INPUT reason".
func selector(field string) string {
	_, id, _ := strings.Cut(field, " ")
	return "#" + id
}

// both are two steps as one.
func both(first, second step) step {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		if _, err := first(ctx, target); err != nil {
			return chromedp.Void{}, err
		}
		return second(ctx, target)
	}
}

func TestConsole_EachAction_ByMouseAndByKeyboard(t *testing.T) {
	for way, use := range hands {
		t.Run(way, func(t *testing.T) {
			s, ctx := newSite(t), browser(t)
			s.inDoubt(t, "acct-208", "order-1837")
			for _, key := range []string{"order-1843", "order-1844"} {
				s.stuckOrder(t, key)
			}
			s.stuckUndo(t, "trip-1")
			s.stuckUndo(t, "trip-2")
			for _, act := range []struct {
				page, link, button string
				steps              []step // between the reason and the button
				says               []string
				want               store.State // of the record
			}{
				{"", "8e03978e", "It did not happen", nil, []string{"Resolved."}, store.Released},
				{"", "invoice-2026", "It happened", []step{use.unfold(), use.write("TEXTAREA body", `{"payment":"p-9"}`)}, []string{"Resolved.", "p-9"}, store.Completed},
				{"", "order-1837", "It failed for good", nil, []string{"Resolved."}, store.Failed},
				{"records?state=failed", "order-1841", "Reopen", nil, []string{"Reopened"}, store.Released},
				{"", "order-1842", "Skip the step", []step{use.unfold(), use.write("TEXTAREA result", `"p-10"`)}, []string{"Decided", "decided: skip charge card"}, store.Released},
				{"", "order-1843", "Go on", []step{use.tick("INPUT doubt-0")}, []string{"Decided", "decided: retry; charge card did not happen"}, store.Released},
				{"sagas", "order-1844", "Turn back", []step{use.tick("INPUT doubt-0")}, []string{"Decided", "decided: back; charge card did not happen", "The saga turned back"}, store.Released},
				{"", "trip-1", "Try again", nil, []string{"Decided", "decided: retry"}, store.Released},
				{"", "trip-2", "Skip the step", nil, []string{"Decided", "decided: skip charge:undo"}, store.Released},
				{"outbox", "1", "Send it again", nil, []string{"Due at once"}, 0},
				{"outbox?state=held", "1", "Drop it", nil, []string{"Dropped"}, 0},
			} {
				do(ctx, t, chromedp.Navigate(s.url+act.page), use.follow(act.link), chromedp.WaitVisible("#reason"), use.write("INPUT reason", "ledger 4711"))
				k := evaluate[store.Key](ctx, t, `(f => ({Operation: f.get("operation"), Tenant: f.get("tenant"), Value: f.get("key")}))(new URLSearchParams(location.search))`)
				steps := append(act.steps, use.press(act.button))
				if way == "keyboard" {
					steps = append([]step{chromedp.KeyEvent(kb.Enter)}, steps...) // it decides nothing
				}
				for _, text := range act.says {
					steps = append(steps, shows(text))
				}
				do(ctx, t, steps...)
				if act.want == 0 {
					continue
				}
				if got := s.state(t, k); got != act.want {
					t.Errorf("%s: %v is %v, want %v", act.button, k, got, act.want)
				}
			}
			stats, err := s.box.Stats(t.Context())
			if err != nil || stats.Quarantined != 0 || stats.StoppedKeys != 0 {
				t.Errorf("the outbox has %+v, %v", stats, err)
			}
		})
	}
}
