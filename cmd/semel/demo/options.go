package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
)

// Options are the options of the demo.
type Options struct {
	Orders  int // 0: as many as the demo needs
	Clients int // at once
	Kills   int // of each kind of process
	Seed    uint64
	HTML    string // path of an HTML page with charts; empty: no page
	JSON    bool   // one object on standard output, instead of the table
	Keep    bool   // the working directory
	// Events shows consumers of a broker, instead of requests through a proxy.
	Events bool
	// Saga shows orders over three systems, instead of requests through a proxy.
	Saga bool

	// Store is the URL of a PostgreSQL or Redis that keeps the proxy's records,
	// in a schema, or under a prefix, that is there for the demo alone; empty:
	// SQLite.
	Store string

	// OnDoubt is the policy of the proxy: park. With retry the demo has to
	// fail, which shows that it can.
	OnDoubt string
	// BrokerKeys makes the event demo fail, as OnDoubt the other: see
	// consumer.Options.
	BrokerKeys bool
	// FreshKeys makes the saga demo fail: see orders.Options.
	FreshKeys bool
	// Program is the path of semel. Empty: the running program.
	Program string
}

// How many orders show enough within a minute, and within half a minute.
const usualOrders, usualSagas = 2000, 300

const (
	leastOrders, mostOrders = 50, 100_000
	mostClients, mostKills  = 256, 100
)

func (o *Options) complete() error {
	var policy store.Policy
	if o.Orders == 0 {
		o.Orders = usualOrders
		if o.Saga {
			o.Orders = usualSagas
		}
	}
	within := func(field string, n, least, most int) error {
		if n < least || n > most {
			return &input.Error{Field: field, Value: strconv.Itoa(n), Want: fmt.Sprintf("must be from %d to %d", least, most)}
		}
		return nil
	}
	if err := within("--orders", o.Orders, leastOrders, mostOrders); err != nil {
		return err
	}
	if err := within("--clients", o.Clients, 1, mostClients); err != nil {
		return err
	}
	if err := within("--kills", o.Kills, 0, mostKills); err != nil {
		return err
	}
	if err := policy.UnmarshalText([]byte(o.OnDoubt)); err != nil {
		return &input.Error{Field: "--on-doubt", Value: o.OnDoubt, Want: "choose park or retry"}
	}
	if o.Saga && o.Events {
		return &input.Error{Field: "--saga", Value: "with --events", Want: "must be left out: these are two demos; run one after the other"}
	}
	if o.Store != "" && o.Saga {
		return &input.Error{Field: "--store", Value: "with --saga", Want: "must be left out: there the sagas are in SQLite"}
	}
	if o.Store != "" && o.Events {
		return &input.Error{Field: "--store", Value: "with --events", Want: "must be left out: there the records are in SQLite, with the charges"}
	}
	if scheme, _, _ := strings.Cut(o.Store, ":"); o.Store != "" && !slices.Contains([]string{"postgres", "postgresql", "redis", "rediss"}, scheme) {
		return &input.Error{Field: "--store", Value: scheme + ":…", Want: "choose postgres://USER@HOST/DATABASE or redis://HOST:PORT/0, or leave it out for SQLite in a temporary directory"}
	}
	if o.HTML != "" { // so that a wrong path does not cost a whole demo
		if info, err := os.Stat(filepath.Dir(o.HTML)); err != nil || !info.IsDir() {
			return &input.Error{Field: "--html", Value: o.HTML, Want: "is in a directory that does not exist; create it first"}
		}
	}
	if o.Program == "" {
		path, err := os.Executable()
		if err != nil {
			return fmt.Errorf("where this program is: %w", err)
		}
		o.Program = path
	}
	return nil
}

const (
	// work is how long a payment takes: long enough that a kill finds some
	// under way.
	work = 10 * time.Millisecond
	// lease is short, so that the requests of a killed proxy are recovered soon. In production it would be the default, 30 s.
	lease = time.Second
)

// limit is when a side gives up.
func (o *Options) limit() time.Duration {
	return time.Minute + time.Duration(o.Kills)*5*time.Second + time.Duration(o.Orders)*20*time.Millisecond
}
