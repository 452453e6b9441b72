package pgwire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// formatSettings are the settings that change how the server writes and reads values as
// text, as the store needs them.
var formatSettings = map[string]string{
	"bytea_output": "hex", "array_nulls": "on", "standard_conforming_strings": "on", "client_encoding": "UTF8",
	minMessages: "notice", // the warnings that CommitWatch needs
}

// ownSettings are the other settings that the store's own connections need, whatever
// the settings of the server, the database and the role are. A statement of the store
// sets its own time limits. The settings that refuse writes are left as they are,
// because somebody has decided so.
var ownSettings = map[string]string{
	"default_transaction_isolation": "read committed", "default_transaction_deferrable": "off", "search_path": "pg_catalog",
	"lock_timeout": "0", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0", "row_security": "on", "transform_null_equals": "off",
}

// PinFormats is cfg with the settings that the text format of values depends on, and with
// the warnings that CommitWatch needs.
func PinFormats(cfg *pgxpool.Config) *pgxpool.Config { return pin(cfg, formatSettings) }

// PinAll is cfg with all settings that the store's own connections need, and more.
func PinAll(cfg *pgxpool.Config, more map[string]string) *pgxpool.Config {
	all := maps.Clone(more)
	maps.Copy(all, formatSettings)
	maps.Copy(all, ownSettings)
	return pin(cfg, all)
}

// minMessages is the setting of the least message that the server sends.
const minMessages = "client_min_messages"

// hidesWarnings reports whether the server sends no warnings with this value of minMessages.
func hidesWarnings(value string) bool {
	return slices.Contains([]string{"error", "fatal", "panic"}, strings.ToLower(value))
}

// CheckWarnings returns ErrUnsafe if the server sends the connections of a pool no warnings,
// without which CommitWatch sees nothing. A pooler may have ignored the setting.
func CheckWarnings(ctx context.Context, pool *pgxpool.Pool) error {
	var value string
	if err := pool.QueryRow(ctx, "SELECT current_setting('client_min_messages')").Scan(&value); err != nil || !hidesWarnings(value) {
		return err
	}
	return fmt.Errorf("%w: client_min_messages is %s: the server does not warn of a commit that its standby may not have; ALTER ROLE … SET client_min_messages = notice", ErrUnsafe, value)
}

// pin is cfg with settings, except for those that cfg has.
func pin(cfg *pgxpool.Config, settings map[string]string) *pgxpool.Config {
	cfg = cfg.Copy()
	if hidesWarnings(cfg.ConnConfig.RuntimeParams[minMessages]) {
		delete(cfg.ConnConfig.RuntimeParams, minMessages)
	}
	for name, value := range settings {
		if _, set := cfg.ConnConfig.RuntimeParams[name]; !set {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	return cfg
}

// CheckFormats returns ErrUnsafe if the connections of a pool exchange values as text,
// and a setting changes the format of the text.
func CheckFormats(ctx context.Context, pool *pgxpool.Pool) error {
	switch pool.Config().ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
	default:
		return nil
	}
	var errs []error
	var bytea, nulls string
	if err := pool.QueryRow(ctx, "SELECT current_setting('bytea_output'), current_setting('array_nulls')").Scan(&bytea, &nulls); err != nil {
		return err
	}
	if bytea != "hex" {
		errs = append(errs, fmt.Errorf("%w: bytea_output is %s: without prepared statements, records cannot be read; ALTER ROLE … SET bytea_output = hex", ErrUnsafe, bytea))
	}
	if nulls != "on" {
		errs = append(errs, fmt.Errorf("%w: array_nulls is %s: without prepared statements, batches cannot be written; ALTER ROLE … SET array_nulls = on", ErrUnsafe, nulls))
	}
	return errors.Join(errs...)
}
