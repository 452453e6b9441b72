package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

// Stores keep the numbers and the names, so they must never change.
var stateTable = []struct {
	state    store.State
	number   uint8
	name     string
	terminal bool
}{
	{store.Started, 1, "started", false}, {store.Processing, 2, "processing", false}, {store.Released, 3, "released", false},
	{store.Completed, 4, "completed", true}, {store.Failed, 5, "failed", true}, {store.Unknown, 6, "unknown", false},
}

func TestState_NumberAndName_NeverChange(t *testing.T) {
	for _, c := range stateTable {
		if uint8(c.state) != c.number || c.state.String() != c.name || !c.state.Valid() || c.state.Terminal() != c.terminal {
			t.Errorf("state %d is %q, valid %v, terminal %v; want %d, %q, true, %v", uint8(c.state), c.state, c.state.Valid(), c.state.Terminal(), c.number, c.name, c.terminal)
		}
		text, err := c.state.MarshalText()
		if err != nil || string(text) != c.name {
			t.Errorf("MarshalText of %v: %q, %v", c.state, text, err)
		}
		var back store.State
		if err := back.UnmarshalText(text); err != nil || back != c.state {
			t.Errorf("UnmarshalText of %q: %v, %v", text, back, err)
		}
	}
}

func TestState_Invalid_IsError(t *testing.T) {
	valid := 0
	for n := range 256 {
		s := store.State(n)
		if s.Valid() {
			valid++
			continue
		}
		if _, err := s.MarshalText(); err == nil || s.Terminal() || s.String() != fmt.Sprintf("State(%d)", n) {
			t.Errorf("state %d: text error %v, terminal %v, named %q", n, err, s.Terminal(), s)
		}
	}
	if valid != len(stateTable) {
		t.Errorf("%d states are valid, want %d", valid, len(stateTable))
	}
	for _, text := range []string{"", "Started", "started ", "none", "State(1)", "1"} {
		s := store.Failed
		err := s.UnmarshalText([]byte(text))
		if err == nil || s != store.Failed {
			t.Errorf("UnmarshalText of %q: %v, error %v", text, s, err)
			continue
		}
		for _, c := range stateTable {
			if !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
				t.Errorf("the error %q does not name the value and each state", err)
			}
		}
	}
}

func TestPolicy_NumberAndName_NeverChange(t *testing.T) {
	for p, name := range map[store.Policy]string{0: "retry", 1: "park"} {
		text, err := p.MarshalText()
		if err != nil || string(text) != name || p.String() != name {
			t.Errorf("policy %d is %q, text %q, error %v; want %q", uint8(p), p, text, err, name)
		}
		back := 1 - p
		if err := back.UnmarshalText(text); err != nil || back != p {
			t.Errorf("UnmarshalText of %q: %v, %v", text, back, err)
		}
	}
	if store.Retry != 0 || store.Park != 1 {
		t.Error("the numbers of the policies have changed")
	}
	if _, err := store.Policy(2).MarshalText(); err == nil || store.Policy(2).String() != "Policy(2)" {
		t.Errorf("policy 2 is %q, error %v", store.Policy(2), err)
	}
	for _, text := range []string{"", "Park", "fail", "2"} {
		p := store.Park
		if err := p.UnmarshalText([]byte(text)); err == nil || p != store.Park || !strings.Contains(err.Error(), "retry, park") {
			t.Errorf("UnmarshalText of %q: %v, error %v", text, p, err)
		}
	}
}

func TestPolicy_Stricter_IsPark(t *testing.T) {
	for _, a := range []store.Policy{store.Retry, store.Park} {
		for _, b := range []store.Policy{store.Retry, store.Park} {
			want := store.Retry
			if a == store.Park || b == store.Park {
				want = store.Park
			}
			if got := a.Stricter(b); got != want {
				t.Errorf("%v.Stricter(%v) is %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestState_InJSON_IsText(t *testing.T) {
	type shown struct {
		State  store.State
		Policy store.Policy
		Counts map[store.State]int
	}
	in := shown{store.Unknown, store.Park, map[store.State]int{store.Failed: 2}}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"State":"unknown","Policy":"park","Counts":{"failed":2}}` {
		t.Fatalf("JSON is %s, error %v", text, err)
	}
	var out shown
	if err := json.Unmarshal(text, &out); err != nil || out.State != in.State || out.Policy != in.Policy || out.Counts[store.Failed] != 2 {
		t.Errorf("read back: %+v, error %v", out, err)
	}
}
