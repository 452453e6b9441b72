package main

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/internal/input"
)

func usual() Options { return Options{Orders: 2000, Clients: 16, Kills: 8, Seed: 1, OnDoubt: "park"} }

func TestOptions_BeyondLimit_Refused(t *testing.T) {
	for want, wrong := range map[string]func(*Options){
		`--orders: "49": must be from 50 to 100000`:                                          func(o *Options) { o.Orders = 49 },
		`--clients: "0": must be from 1 to 256`:                                              func(o *Options) { o.Clients = 0 },
		`--kills: "101": must be from 0 to 100`:                                              func(o *Options) { o.Kills = 101 },
		`--html: "none/report.html": is in a directory that does not exist; create it first`: func(o *Options) { o.HTML = "none/report.html" },
		`--on-doubt: "maybe": choose park or retry`:                                          func(o *Options) { o.OnDoubt = "maybe" },
		`--store: "redis+cluster:…": choose postgres://USER@HOST/DATABASE or redis://HOST:PORT/0, or leave it out for SQLite in a temporary directory`: func(o *Options) {
			o.Store = "redis+cluster://ann:secret@h/0"
		},
		`--saga: "with --events": must be left out: these are two demos; run one after the other`: func(o *Options) { o.Saga, o.Events = true, true },
		`--store: "with --saga": must be left out: there the sagas are in SQLite`: func(o *Options) {
			o.Store, o.Saga = "postgres://h/d", true
		},
		`--store: "with --events": must be left out: there the records are in SQLite, with the charges`: func(o *Options) {
			o.Store, o.Events = "postgres://h/d", true
		},
	} {
		o := usual()
		wrong(&o)
		if err := Run(t.Context(), o, nil, nil); err == nil || err.Error() != want || !input.Is(err) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestProgram_Default_IsTheRunningOne(t *testing.T) {
	o := usual()
	if err := o.complete(); err != nil || o.Program == "" {
		t.Errorf("program %q, %v", o.Program, err)
	}
}

func TestComplete_NoOrders_AsManyAsTheDemoNeeds(t *testing.T) {
	for isSaga, want := range map[bool]int{false: 2000, true: 300} {
		o := usual()
		o.Orders, o.Saga = 0, isSaga
		if err := o.complete(); err != nil || o.Orders != want {
			t.Errorf("saga %v: %d orders, want %d; %v", isSaga, o.Orders, want, err)
		}
	}
}

func TestLimit_LargerDemo_IsLonger(t *testing.T) {
	small, large := usual(), usual()
	large.Orders = 10 * small.Orders
	if small.limit() < time.Minute || large.limit() <= small.limit() {
		t.Errorf("%v and %v", small.limit(), large.limit())
	}
}

func TestProxy_Park_HasReconcileURL(t *testing.T) {
	for policy, want := range map[string]bool{"park": true, "retry": false} {
		args := strings.Join(proxyArgs("l", "a", "http://u", nil, policy), " ")
		if got := strings.Contains(args, "--reconcile-url=http://u/reconcile"); got != want || !strings.Contains(args, "--on-doubt="+policy) {
			t.Errorf("%s: %s", policy, args)
		}
	}
}

func TestWork_LongestPayment_OutlastsLease(t *testing.T) {
	if fleet.Stall/2 <= lease+lease/4 {
		t.Errorf("half a stall of %v is over before a lease of %v has lapsed", fleet.Stall, lease)
	}
}
