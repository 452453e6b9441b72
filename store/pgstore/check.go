package pgstore

import (
	"context"
	"errors"
	"fmt"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Check implements store.Checker. It reads the settings that a new connection
// has; each that is unsafe is an ErrUnsafe by name. It changes nothing.
func (s *Store) Check(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return pgwire.Explain("check", s.check(ctx))
}

// settings are what Check looks at.
type settings struct {
	synchronousCommit, fsync, fullPageWrites, isolation string
	replica, readOnly                                   bool
	version, maxConnections                             int
}

const readSettings = `SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
	current_setting('default_transaction_isolation'), pg_is_in_recovery(), current_setting('default_transaction_read_only')::boolean,
	current_setting('server_version_num')::int, current_setting('max_connections')::int`

func (s *Store) check(ctx context.Context) error {
	var is settings
	err := s.own.QueryRow(ctx, readSettings).Scan(&is.synchronousCommit, &is.fsync, &is.fullPageWrites, &is.isolation,
		&is.replica, &is.readOnly, &is.version, &is.maxConnections)
	if err != nil {
		return err
	}
	if number, err := s.schema(ctx, s.own); err != nil {
		return err
	} else if number < len(ups()) {
		return fmt.Errorf("%w: its number is %d, and this version needs %d; call Migrate, or run the scripts of Migrations", ErrSchema, number, len(ups()))
	}
	own := s.opt.Connections + 1 + spareConns
	if s.opt.Notify {
		own += 2 + spareConns
	}
	return is.judge(own, int(s.app.Config().MaxConns))
}

// judge names each setting under which the store cannot keep its promises, for
// a store that opens so many connections of its own, and a pool of so many.
func (is *settings) judge(own, pool int) error {
	var errs []error
	for _, f := range []struct {
		wrong     bool
		name, why string
	}{
		{is.synchronousCommit == "off", "synchronous_commit is off", "a crash of the server takes back the last commits, and what they recorded runs again; set it to on (see Options.RelaxedClaims)"},
		{is.fsync != "on", "fsync is " + is.fsync, "a crash of the system can destroy the database; set it to on"},
		{is.fullPageWrites != "on", "full_page_writes is " + is.fullPageWrites, "a crash of the system can destroy pages; set it to on, unless the file system never tears a page"},
		{is.replica, "the server is a replica", "it cannot be written to, and shows the past; connect to the primary (target_session_attrs=read-write)"},
		{is.readOnly && !is.replica, "default_transaction_read_only is on", "nothing can be claimed; set it to off for this role"},
		{is.isolation != "read committed", fmt.Sprintf("default_transaction_isolation is %q", is.isolation), "statements that meet others fail (40001) instead of waiting; set it to \"read committed\" for this role"},
		{is.version < 140000, fmt.Sprintf("server_version_num is %d", is.version), "version 14 is the oldest that works"},
		{pool < 4, fmt.Sprintf("the pool has %d connections", pool), "each transaction of Atomic.Run holds one for as long as its handler runs; set pool_max_conns to 4 at least"},
		{own+pool > is.maxConnections, fmt.Sprintf("max_connections is %d", is.maxConnections), fmt.Sprintf("this process alone may open %d; raise it, or lower Options.Connections and pool_max_conns", own+pool)},
	} {
		if f.wrong {
			errs = append(errs, fmt.Errorf("%w: %s: %s", ErrUnsafe, f.name, f.why))
		}
	}
	return errors.Join(errs...)
}
