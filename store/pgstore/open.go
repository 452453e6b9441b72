package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/internal/notify"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/schema"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Open opens the store in the database at url (postgres://…, or key=value), with
// connections of its own. It brings the schema up to date unless
// Options.NoMigrate. Nil options are the defaults. The ctx bounds the opening
// only.
func Open(ctx context.Context, url string, o *Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("pgstore: open: %w", err) // it shows no password
	}
	return open(ctx, cfg, nil, o)
}

// New is Open with the settings of a pool that the application has. [Atomic]
// takes its transactions from that pool, which stays the caller's to close;
// the rest of the store opens connections of its own (Options.Connections),
// with the pool's hooks, so that handlers which hold the pool cannot starve
// it.
func New(ctx context.Context, pool *pgxpool.Pool, o *Options) (*Store, error) {
	if pool == nil {
		return nil, errors.New("pgstore: New: the pool is nil; use Open for a URL")
	}
	return open(ctx, pool.Config(), pool, o)
}

func open(ctx context.Context, cfg *pgxpool.Config, app *pgxpool.Pool, o *Options) (*Store, error) {
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opt: opt, app: app, idle: pgwire.Millis(opt.MaxIdleTx)}
	s.makeStatements(false)
	if err := s.connect(ctx, cfg); err != nil {
		_ = s.Close()
		return nil, pgwire.Explain("open", err)
	}
	s.quick, s.patient = s.newSession(table.LaneLockTimeout), s.newSession(pgwire.Millis(opt.LockTimeout))
	s.alone = make(chan struct{}, max(1, opt.Connections-2*opt.Flushers-1))
	s.claims, s.settles, s.replays = s.newClaimLane(), s.newSettleLane(), s.newReplayLane()
	return s, nil
}

// makeStatements makes the statements. For spelled see packedOf.
func (s *Store) makeStatements(spelled bool) {
	s.sql, s.txSQL = table.NewStatements(s.opt.Schema, s.opt.clock, s.opt.RelaxedClaims, spelled), table.NewStatements(s.opt.Schema, s.opt.clock, false, spelled)
}

func (s *Store) connect(ctx context.Context, cfg *pgxpool.Config) (err error) {
	if s.app == nil {
		s.opened = true
		if s.app, err = pgxpool.NewWithConfig(ctx, cfg.Copy()); err != nil {
			return err
		}
	}
	if err := s.connectOwn(ctx, steady(cfg)); err != nil {
		if pgwire.Code(err) != pgwire.ProtocolViolation {
			return err
		}
		// A pooler that knows no such settings. It hides prepared statements
		// from the store too, whose plans they are for.
		if err := s.connectOwn(ctx, cfg); err != nil {
			return err
		}
	}
	// A pooler may also have ignored them, and a user set them otherwise.
	if err := s.own.QueryRow(ctx, s.sql.HasPlannerSettings).Scan(&s.steady); err != nil {
		return err
	}
	prepare := s.schema().Migrate
	if s.opt.NoMigrate {
		prepare = s.schema().Check
	}
	if err := prepare(ctx, s.own); err != nil {
		return err
	}
	if spelled, err := s.spelled(ctx); err != nil {
		return err
	} else if spelled {
		s.makeStatements(true)
	}
	tables, err := s.schema().Tables(ctx, s.own)
	if err != nil {
		return err
	}
	s.parts = s.partsOf(tables)
	var number int
	if err := s.own.QueryRow(ctx, s.sql.Meta).Scan(&s.id, &number); err != nil || !s.opt.Notify {
		return err
	}
	s.listener, err = notify.Listen(ctx, sized(cfg, 2+spareConns), s.opt.channel(), s.opt.echo)
	return err
}

// connectOwn opens the connections that are the store's own.
func (s *Store) connectOwn(ctx context.Context, cfg *pgxpool.Config) (err error) {
	s.closeOwn()
	if s.own, err = pgxpool.NewWithConfig(ctx, sized(cfg, s.opt.Connections)); err != nil {
		return err
	}
	if s.renewal, err = pgxpool.NewWithConfig(ctx, sized(cfg, 1+spareConns)); err != nil {
		return err
	}
	return s.own.Ping(ctx)
}

func (s *Store) closeOwn() {
	for _, p := range []*pgxpool.Pool{s.own, s.renewal} {
		if p != nil {
			p.Close()
		}
	}
}

// steady is cfg with these settings, but for those that it has.
func steady(cfg *pgxpool.Config) *pgxpool.Config {
	cfg = cfg.Copy()
	for name, value := range table.PlannerSettings {
		if _, set := cfg.ConnConfig.RuntimeParams[name]; !set {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	return cfg
}

// spareConns is how many connections a pool may have besides those that it needs,
// for when one hangs: the driver keeps its place, for up to 15 s after it was
// given up, and for up to two minutes while it connects. Who must not wait as long
// takes another.
const spareConns = 3

// sized is cfg with up to n connections, none of them before it is needed.
func sized(cfg *pgxpool.Config, n int) *pgxpool.Config {
	cfg = cfg.Copy()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = int32(n), 0, 0
	return cfg
}

// Close answers what is queued, and closes the store's connections. Methods
// that are called later give ErrClosed. Harmless when repeated.
func (s *Store) Close() error {
	s.closed.Store(true)
	if s.claims != nil {
		s.claims.Close()
		s.settles.Close()
		s.replays.Close()
	}
	if s.listener != nil {
		s.listener.Close()
	}
	s.closeOwn()
	if s.opened && s.app != nil {
		s.app.Close()
	}
	return nil
}

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
	if err := s.schema().Check(ctx, s.own); err != nil {
		return err
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

// spelled reports whether the columns have to be.
func (s *Store) spelled(ctx context.Context) (bool, error) {
	rows, err := s.own.Query(ctx, `SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname = $2::text AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, s.opt.Schema, table.Name)
	if err != nil {
		return false, err
	}
	are, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return len(are) < len(table.Columns) || !slices.Equal(are[:len(table.Columns)], table.Columns), err
}

// Migrations are the scripts that make the tables, for applications that run
// migrations themselves: 0001_init.up.sql and so on, to be run in order, each in one
// transaction. The .down.sql scripts undo them, except for the schema "semel" itself.
// Each up script sets semel_meta.schema to its number. For another schema, replace
// "semel", with the quotes, by its quoted name.
func Migrations() fs.FS { return schema.Scripts() }

// PartitionedInit is the script 0001_init.up.sql of [Migrations] with the table of
// records in n partitions, 1 to 256; see Options.Partitions. The other scripts are
// the same with and without partitions.
func PartitionedInit(n int) (string, error) { return schema.PartitionedScript(n) }

// Migrate implements store.Migrator. It runs the migrations that the schema has not
// had, in one transaction; the first one makes the schema. A schema that is newer
// than this version of the package is ErrSchema.
func (s *Store) Migrate(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return pgwire.Explain("migrate", s.schema().Migrate(ctx, s.own))
}

func (s *Store) schema() schema.Schema {
	return schema.Schema{Name: s.opt.Schema, Partitions: s.opt.Partitions}
}

func (s *Store) quoted() string { return s.schema().Quoted() }
