package pgstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// oddSettings are settings of a database or role that change how values are written,
// how names are found, how transactions isolate, or how long statements may take. They
// are tried one by one, and those of otherSettings together.
var (
	oddSettings = map[string]string{
		"bytea_output": "'escape'", "array_nulls": "'off'", "standard_conforming_strings": "'off'", "client_encoding": "'LATIN1'",
		"search_path": "''", "default_transaction_isolation": "'serializable'", "lock_timeout": "'1'", "plan_cache_mode": "'force_custom_plan'",
		"statement_timeout": "'20'", "idle_in_transaction_session_timeout": "'20'", "idle_session_timeout": "'50'",
	}
	otherSettings = map[string]string{
		"backslash_quote": "'off'", "escape_string_warning": "'off'", "datestyle": "'German'", "intervalstyle": "'sql_standard'", "timezone": "'Asia/Kathmandu'",
		"extra_float_digits": "'-15'", "xmloption": "'document'", "default_transaction_deferrable": "'on'", "row_security": "'off'", "transform_null_equals": "'on'",
		"quote_all_identifiers": "'on'", "enable_indexscan": "'off'", "enable_nestloop": "'off'", "enable_tidscan": "'off'",
		"jit": "'on'", "jit_inline_above_cost": "'-1'", "jit_optimize_above_cost": "'-1'", // these two save the compiler most of its time, and change no result
		"client_min_messages": "'debug1'", "check_function_bodies": "'off'", "gin_fuzzy_search_limit": "'1'", "cursor_tuple_fraction": "'0'", "from_collapse_limit": "'1'",
		"join_collapse_limit": "'1'", "work_mem": "'64'", "parallel_tuple_cost": "'0'", "parallel_setup_cost": "'0'", "min_parallel_table_scan_size": "'0'", "default_toast_compression": "'pglz'",
	}
)

// textFormats are the settings that matter if values are exchanged as text.
var textFormats = []string{"bytea_output", "array_nulls", "standard_conforming_strings", "client_encoding"}

// handlersToo are the settings above that limit the statements of handlers too.
var handlersToo = []string{"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"}

func TestStore_OddSettings_WorksAsUsual(t *testing.T) {
	url := database(t, "semel_odd")
	admin := pool(t, url)
	openMode := func(mode string) (*Store, error) {
		return Open(t.Context(), url+"&default_query_exec_mode="+mode, &Options{Schema: "semel " + mode})
	}
	modes := []string{"cache_statement", "exec", "simple_protocol"}
	shops := map[string]*shop{}
	for _, mode := range modes {
		s, err := openMode(mode)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		shops[mode] = newShop(t, s, nil)
	}
	try := func(name string, settings map[string]string, modes ...string) {
		for setting, value := range settings {
			mustExec(t, admin, "ALTER DATABASE semel_odd SET "+setting+" = "+value)
		}
		for _, mode := range modes {
			s, err := openMode(mode)
			for began := time.Now(); tooLate(err) && time.Since(began) < 5*time.Minute; {
				s, err = openMode(mode) // the limits count until the store has set its own, which a busy machine makes late
			}
			if err != nil {
				t.Errorf("%s, %s: open: %v", name, mode, err)
				continue
			}
			a, err := NewAtomic(s, &semel.Options{StoreTimeout: 2 * time.Minute}) // some settings make the server slow
			if err != nil {
				t.Fatal(err)
			}
			(&shop{s, a, shops[mode].table}).worksAsUsual(t, name, name+", "+mode)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		mustExec(t, admin, "ALTER DATABASE semel_odd RESET ALL")
	}
	for name, value := range oddSettings {
		if slices.Contains(textFormats, name) {
			try(name, map[string]string{name: value}, modes...)
		} else {
			try(name, map[string]string{name: value}, modes[0])
		}
	}
	try("other settings", otherSettings, modes...)
}

// tooLate reports whether a time limit of the server has ended a statement or a session.
func tooLate(err error) bool {
	return slices.Contains([]string{"57014", "57P05", "25P03"}, pgwire.Code(err))
}

// worksAsUsual uses each part of a store once.
func (p *shop) worksAsUsual(t *testing.T, setting, name string) {
	t.Helper()
	body := "result \\ \x00 ü of " + name
	complete(t, p.s, name, body)
	if f, err := p.s.Claim(t.Context(), proposal(name)); err != nil || f.Won || string(f.Record.Outcome.Body) != body {
		t.Errorf("%s: a duplicate: %v, %q", name, err, f.Record.Outcome.Body)
	}
	claimed := claim(t, p.s, "renewed "+name)
	if errs, err := p.s.Renew(t.Context(), []store.Lease{claimed.Lease()}, time.Minute); err != nil || errs[0] != nil {
		t.Errorf("%s: renew: %v, %v", name, err, errs)
	}
	renewed := get(t, p.s, "renewed "+name)
	if f, err := p.s.Swap(t.Context(), renewed.Seen(), proposal("renewed "+name)); err != nil || !f.Won {
		t.Errorf("%s: swap: %v", name, err)
	}
	for found, err := range p.s.List(t.Context(), store.Filter{Limit: 3}) {
		if err != nil {
			t.Errorf("%s: list: %v, %v", name, found.Record.Key, err)
		}
	}
	if slices.Contains(handlersToo, setting) {
		return
	}
	keys := []string{"a " + name, "b " + name, "c " + name}
	for range 2 {
		if got, err := Do(t.Context(), p.a, call(name), p.pay(name, nil)); err != nil || got != "receipt of "+name {
			t.Errorf("%s: Do: %q, %v", name, got, err)
		}
		for i, end := range p.a.RunBatch(t.Context(), poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			for _, n := range newCalls {
				if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", keys[n.Index]); err != nil {
					return err
				}
				n.Outcome.Code = n.Index // so that some columns differ, and some are null
			}
			return nil
		}) {
			if end.Err != nil || end.Outcome.Code != i {
				t.Errorf("%s: call %d of a batch: %v, %v", name, i, end.Outcome, end.Err)
			}
		}
	}
	if n := ask[int](t, p.s.ownPool, "SELECT count(*) FROM "+p.table+" WHERE key = ANY($1)", append(keys, name)); n != 4 {
		t.Errorf("%s: %d effects, want 4", name, n)
	}
}

// The connections of an application's pool have the application's settings. One that
// makes records unreadable is found at start.
func TestNew_TextFormatUnreadable_ErrUnsafe(t *testing.T) {
	s := openNew(t, nil)
	cfg := s.ownPool.Config()
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.ConnConfig.RuntimeParams["bytea_output"] = "escape"
	app, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	if _, err := New(t.Context(), app, &Options{Schema: s.options.Schema}); !errors.Is(err, ErrUnsafe) {
		t.Errorf("got %v, want ErrUnsafe", err)
	}
}
