package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

func TestOptions_Invalid_NameFlagValueAndLimits(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`--keys: "0": must be from 1 to 100000`:                                             func(o *Options) { o.Keys = 0 },
		`--keys: "100001": must be from 1 to 100000`:                                        func(o *Options) { o.Keys = 100_001 },
		`--parallel: "1": must be from 2 to 256`:                                            func(o *Options) { o.Parallel = 1 },
		`--parallel: "257": must be from 2 to 256`:                                          func(o *Options) { o.Parallel = 257 },
		`--processes: "-1": must be from 0 to 16`:                                           func(o *Options) { o.Processes = -1 },
		`--processes: "17": must be from 0 to 16`:                                           func(o *Options) { o.Processes = 17 },
		`--body: "0": must be from 1 to 67108864`:                                           func(o *Options) { o.Body = 0 },
		`--limit: "10ms": must be from 1s to 24h0m0s`:                                       func(o *Options) { o.Limit = 10 * time.Millisecond },
		`--limit: "25h0m0s": must be from 1s to 24h0m0s`:                                    func(o *Options) { o.Limit = 25 * time.Hour },
		`--only: "bogus": choose among settings, clock, claim-race`:                         func(o *Options) { o.Only = []string{"clock", "bogus"} },
		`--skip: "bogus": choose among settings, clock, claim-race`:                         func(o *Options) { o.Skip = []string{"bogus"} },
		`--skip: "clock": leaves no check to run`:                                           func(o *Options) { o.Only, o.Skip = []string{"clock"}, []string{"clock"} },
		`--only: "cleanup": choose among settings, clock, claim-race, strangers, swap-race`: func(o *Options) { o.Only = []string{"cleanup"} },
	} {
		o := small()
		change(&o)
		if _, err := Run(t.Context(), Target{}, o); !input.Is(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestOptions_OnlyAndSkip_ChooseChecks(t *testing.T) {
	chosen := func(only, skip []string) string {
		o := Options{Only: only, Skip: skip}
		var names []string
		for _, c := range o.chosen() {
			names = append(names, c.name)
		}
		return strings.Join(names, " ")
	}
	if got := chosen(nil, nil); got != strings.Join(Names(), " ") {
		t.Errorf("all: %s", got)
	}
	if got := chosen([]string{"guard", "clock"}, nil); got != "clock guard" {
		t.Errorf("only: %s", got)
	}
	if got := chosen([]string{"guard", "clock"}, []string{"guard"}); got != "clock" {
		t.Errorf("only, but not: %s", got)
	}
	if got := chosen(nil, Names()[1:]); got != Names()[0] {
		t.Errorf("skip: %s", got)
	}
}

func TestChecks_All_HaveNameAndSentence(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range append([]check{cleanup}, checks...) {
		if seen[c.name] || c.name != strings.ToLower(c.name) || strings.ContainsAny(c.name, " ,") {
			t.Errorf("the name %q", c.name)
		}
		seen[c.name] = true
		if !strings.HasSuffix(c.claim, ".") || strings.Count(c.claim, ".") != 1 || strings.Contains(c.claim, "\n") {
			t.Errorf("%s: its claim is not one sentence: %s", c.name, c.claim)
		}
	}
	if len(Names()) != len(Claims()) || len(Names()) != len(checks) {
		t.Error("names and claims differ in number")
	}
}
