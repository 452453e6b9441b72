package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/test/internal/repo"
)

// pages are addresses that show each page with something in it.
func pages() map[string]string {
	record := func(operation, tenant, key string) string {
		return "record?" + url.Values{"operation": {operation}, "tenant": {tenant}, "key": {key}}.Encode()
	}
	stuck := saga.Key("order", "acct-117", "order-1842")
	return map[string]string{
		"overview": "", "records": "records", "call": record("POST /payments", "acct-301", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
		"claimed again": record("POST /refunds", "acct-117", "refund-1106"),
		"completed":     record("POST /payments", "acct-301", "order-1840"), "saga": record(stuck.Operation, stuck.Tenant, stuck.Value),
		"sagas": "sagas", "rates": "rates", "outbox": "outbox", "message": "message?position=1", "empty": "records?key=none", "error": "record?operation=a&key=b",
	}
}

// axe returns the script of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "testdata/axe.sh")
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		proctest.Need(t, fmt.Errorf("%w: %s", errMissing, strings.TrimSpace(said.String())), errMissing)
	}
	script, err := os.ReadFile(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// dark is the colour scheme that the operating system asks for.
func dark(on bool) step {
	value := "light"
	if on {
		value = "dark"
	}
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
		})
		return chromedp.Void{}, err
	}
}

func TestConsole_Axe_NoSeriousFindings(t *testing.T) {
	script := axe(t)
	s, ctx := newSite(t), browser(t)
	for name, path := range pages() {
		for look, prepare := range map[string][]step{
			"light":         {dark(false), chromedp.EmulateViewport(1280, 900)},
			"dark on phone": {dark(true), chromedp.EmulateViewport(390, 844)},
		} {
			do(ctx, t, append(prepare, chromedp.Navigate(s.url+path))...)
			evaluate[chromedp.Void](ctx, t, script+";undefined")
			found := evaluate[string](ctx, t, `axe.run().then(r => JSON.stringify({passed: r.passes.length, violations: r.violations
				.filter(v => v.impact === "serious" || v.impact === "critical").map(v => ({id: v.id, nodes: v.nodes.map(n => n.html)}))}))`, chromedp.EvalAwaitPromise)
			var report struct {
				Passed     int
				Violations []any
			}
			if err := json.Unmarshal([]byte(found), &report); err != nil || report.Passed < 10 || len(report.Violations) > 0 {
				t.Errorf("%s, %s: %s %v", name, look, found, err)
			}
		}
	}
}

// No page is wider than the screen of a phone.
func TestConsole_Phone_NothingIsCutOff(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	for name, path := range pages() {
		do(ctx, t, chromedp.EmulateViewport(390, 844), chromedp.Navigate(s.url+path))
		width := evaluate[int](ctx, t, "document.documentElement.scrollWidth")
		if width > 390 {
			t.Errorf("%s: is %d pixels wide", name, width)
		}
	}
}

// The pictures of the documentation.
func TestConsole_Screenshots(t *testing.T) {
	if os.Getenv("SEMEL_SCREENSHOTS") == "" {
		t.Skip("SEMEL_SCREENSHOTS is not set: the pictures in docs/images stay as they are")
	}
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "docs", "images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, ctx := newSite(t), browser(t)
	for _, shot := range []struct {
		file, page    string
		dark          bool
		width, height int64
	}{
		{"console-overview.png", "overview", false, 1200, 1000},
		{"console-call.png", "call", false, 1200, 1000},
		{"console-saga-dark.png", "saga", true, 1200, 1000},
		{"console-rates.png", "rates", false, 1200, 1000},
		{"console-phone.png", "overview", false, 390, 1100},
	} {
		do(ctx, t, dark(shot.dark), chromedp.EmulateViewport(shot.width, shot.height), chromedp.Navigate(s.url+pages()[shot.page]))
		picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, shot.file), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
