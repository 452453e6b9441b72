package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

// seedOutbox makes an outbox with three messages: one in the quarantine, a later one of
// the same key, and one that waits. It returns the URL and the positions.
func seedOutbox(t *testing.T) (url string, box *sqliteoutbox.Outbox, quarantined, behind, waiting string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if box, err = sqliteoutbox.New(st); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	shop, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = semel.Once(t.Context(), shop, semel.Call{Operation: "o", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}, func(ctx context.Context, _ *semel.Execution) error {
		tx, _ := sqlitestore.TxFrom(ctx)
		return box.Put(ctx, tx,
			outbox.Message{Topic: "orders", OrderKey: "ann", ID: "a1", Headers: []store.Header{{Name: "h", Value: "canary-header"}}, Body: []byte("canary-body")},
			outbox.Message{Topic: "orders", OrderKey: "ann", ID: "a2"}, outbox.Message{Topic: "orders", OrderKey: "bob", ID: "b1", Body: []byte{0xff}})
	})
	if err != nil {
		t.Fatal(err)
	}
	lanes, _, err := box.Lease(t.Context(), "p", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := box.Take(t.Context(), lanes, nil, nil, 10)
	if err != nil || len(taken) != 3 {
		t.Fatalf("taken %v, %v", taken, err)
	}
	if err := box.Settle(t.Context(), []outbox.Result{{Taken: &taken[0], Kind: outbox.Refused, Error: "too\x1b[2J large"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Take(t.Context(), lanes, nil, nil, 10); err != nil { // holds a2
		t.Fatal(err)
	}
	return "sqlite:" + path, box, fmt.Sprint(taken[0].Position), fmt.Sprint(taken[1].Position), fmt.Sprint(taken[2].Position)
}

func TestOutboxList_EachState_ShowsItsMessages(t *testing.T) {
	url, _, _, _, _ := seedOutbox(t)
	for state, want := range map[string]string{"": "a1", "held": "a2", "waiting": "b1", "sent": ""} {
		args := []string{"outbox", "list", "--store", url}
		if state != "" {
			args = append(args, "--state", state)
		}
		r := command(t, append(args, "--json")...)
		var v messageView
		if want == "" && r.stdout == "" && r.code == program.ExitOK {
			continue
		}
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || r.code != program.ExitOK || v.ID != want || v.Position == 0 || strings.Contains(r.stdout, "canary") {
			t.Errorf("%q: %+v, %v", state, r, err)
		}
		r = command(t, args...)
		if r.code != program.ExitOK || !strings.Contains(r.stdout, want) || strings.Contains(r.stdout, "\x1b") || !strings.Contains(r.stderr, "1 waiting, 1 held, 1 quarantined; stopped order keys: 1; the oldest message") {
			t.Errorf("%q: %+v", state, r)
		}
	}
}

func TestOutboxList_NoneInState_NamesTheOtherStates(t *testing.T) {
	url, _, position, _, _ := seedOutbox(t)
	if r := command(t, "outbox", "list", "--store", url, "--state", "sent"); !strings.Contains(r.stderr, "no message is sent; --state quarantined lists 1; --state held lists 1; --state waiting lists 1\n") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "outbox", "list", "--store", url, "--after", position); !strings.Contains(r.stderr, "there are no such messages; --state held lists 1; ") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "outbox", "list", "--store", url); strings.Contains(r.stderr, "no message is") {
		t.Errorf("%+v", r)
	}
}

// The hash is that of seedOutbox's call.
func TestOutboxList_Call_ShowsItsMessagesInAllStates(t *testing.T) {
	url, box, _, _, _ := seedOutbox(t)
	hash := store.Key{Operation: "o", Value: "k"}.Short()
	st, err := sqlitestore.Open(t.Context(), strings.TrimPrefix(url, "sqlite:"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	shop, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = semel.Once(t.Context(), shop, semel.Call{Operation: "o", Tenant: semel.Shared, Key: "other", Payload: semel.NoPayload()}, func(ctx context.Context, _ *semel.Execution) error {
		tx, _ := sqlitestore.TxFrom(ctx)
		return box.Put(ctx, tx, outbox.Message{Topic: "orders", ID: "c1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	r := command(t, "outbox", "list", "--store", url, "--call", strings.ToUpper(hash), "--json")
	var ids []string
	for line := range strings.Lines(r.stdout) {
		var v messageView
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Call != hash {
			t.Errorf("%q: %+v, %v; want call %s", line, v, err, hash)
		}
		ids = append(ids, v.ID+" "+v.State)
	}
	if want := "a1 quarantined, a2 held, b1 waiting"; r.code != program.ExitOK || strings.Join(ids, ", ") != want {
		t.Errorf("%+v; want %s", r, want)
	}
	r = command(t, "outbox", "list", "--store", url, "--call", hash)
	if r.code != program.ExitOK || !strings.Contains(r.stdout, "STATE") || strings.Count(r.stdout, hash) != 3 || strings.Contains(r.stdout, "c1") {
		t.Errorf("%+v", r)
	}
	if r = command(t, "outbox", "show", "1", "--store", url); r.code != program.ExitOK || !strings.Contains(r.stdout, hash) {
		t.Errorf("%+v", r)
	}
	if r = command(t, "outbox", "list", "--store", url, "--call", "00000000"); r.code != program.ExitOK || !strings.Contains(r.stderr, "there is no message of call 00000000\n") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--call", hash, "--state", "held"}, {"--call", hash, "--after", "1"}, {"--call", "order-17"}} {
		if r = command(t, append([]string{"outbox", "list", "--store", url}, args...)...); r.code != program.ExitUsage || !strings.Contains(r.stderr, "--call") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestOutboxStats_CountsMessages(t *testing.T) {
	url, _, _, _, _ := seedOutbox(t)
	r := command(t, "outbox", "stats", "--store", url, "--json")
	var v statsView
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v.OldestSeconds <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	v.OldestSeconds = 0
	if want := (statsView{Waiting: 1, Held: 1, Quarantined: 1, StoppedKeys: 1}); v != want {
		t.Errorf("%+v, want %+v", v, want)
	}
	if r = command(t, "outbox", "stats", "--store", url); r.code != program.ExitOK || !strings.HasPrefix(r.stdout, "1 waiting, 1 held, 1 quarantined; stopped order keys: 1; the oldest message") {
		t.Errorf("%+v", r)
	}
}

func TestOutboxShow_Body_OnlyIfAsked(t *testing.T) {
	url, _, quarantined, _, waiting := seedOutbox(t)
	r := command(t, "outbox", "show", quarantined, "--store", url)
	if r.code != program.ExitOK || strings.Contains(r.stdout, "canary") || !strings.Contains(r.stdout, "quarantined") || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("%+v", r)
	}
	r = command(t, "outbox", "show", quarantined, "--store", url, "--show-body")
	if r.code != program.ExitOK || !strings.Contains(r.stdout, "canary-body") || !strings.Contains(r.stdout, "canary-header") {
		t.Errorf("%+v", r)
	}
	r = command(t, "outbox", "show", waiting, "--store", url, "--show-body", "--json")
	if r.code != program.ExitOK || !strings.Contains(r.stdout, `"body_base64":"/w=="`) {
		t.Errorf("%+v", r)
	}
	if r = command(t, "outbox", "show", "999", "--store", url); r.code != program.ExitFailed || !strings.Contains(r.stderr, "no such message") {
		t.Errorf("%+v", r)
	}
}

func TestOutboxRetryAndDrop_ChangeIsLoggedWithReason(t *testing.T) {
	url, box, quarantined, behind, waiting := seedOutbox(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"retry", waiting}, program.ExitFailed, "another state"},
		{[]string{"retry", quarantined}, program.ExitOK, `"result":"done"`},
		{[]string{"drop", behind}, program.ExitOK, `"result":"done"`},
		{[]string{"drop", behind}, program.ExitFailed, "no such message"},
	} {
		r := commandIn(t, map[string]string{"SUDO_USER": "eve"}, "", append(append([]string{"outbox"}, c.args...), "--store", url, "--reason", "a test")...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, `"reason":"a test"`) || !strings.Contains(r.stderr, "sudo: eve") {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	if s, err := box.Stats(t.Context()); err != nil || s.Quarantined != 0 || s.StoppedKeys != 0 || s.Held != 1 || s.Waiting != 1 {
		t.Errorf("left: %+v, %v", s, err)
	}
	if r := command(t, "outbox", "drop", waiting, "--store", url, "--reason", " "); r.code != program.ExitUsage {
		t.Errorf("without a reason: %+v", r)
	}
}

func TestOutbox_StoreWithoutOutbox_IsRefused(t *testing.T) {
	if r := command(t, "outbox", "list", "--store", "memory:"); r.code == program.ExitOK {
		t.Errorf("%+v", r)
	}
}

func TestOutbox_NoFile_NamesTheServiceThatWritesIt(t *testing.T) {
	t.Parallel()
	r := command(t, "outbox", "stats", "--store", "sqlite:"+filepath.Join(t.TempDir(), "no.db"))
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, "there is no such file; give the store that your service writes the messages to") || strings.Contains(r.stderr, "proxy") || strings.Contains(r.stderr, "migrate") {
		t.Errorf("%+v", r)
	}
}
