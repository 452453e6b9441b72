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

// Open opens the store in the database at url: postgres://… or key=value pairs. It
// runs the migrations unless Options.NoMigrate is set. The store opens up to
// Options.Connections connections for itself, and a second pool for the transactions of
// [Atomic]. The parameter pool_max_conns of the url is the size of that second pool. Nil
// options mean the defaults. The context limits only the opening.
func Open(ctx context.Context, url string, o *Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("pgstore: open: %w", err) // err does not contain the password
	}
	return open(ctx, cfg, nil, o)
}

// ExplainConnect adds the next step to the error of a connection that a program has made
// with pgx itself; errors of Open have it. There is one if the database or the role is not
// there, if the password is wrong, and if no server listens. Any other error is returned as
// it is, and nil for nil.
func ExplainConnect(err error) error { return pgwire.ExplainConnect(err) }

// New is [Open] for an application that has a pool. The transactions of [Atomic] use
// connections of that pool, which the application closes. For everything else the store
// opens connections of its own (Options.Connections) with the pool's settings and
// hooks, so that handlers that hold all connections of the pool do not block the store.
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
	cfg = cfg.Copy()
	s := &Store{options: opt, appPool: app, idleTimeout: pgwire.Millis(opt.MaxIdleTx)}
	s.journal.store = s
	s.commits.Watch(cfg)
	s.makeStatements(false)
	if err := s.connect(ctx, cfg); err != nil {
		_ = s.Close()
		return nil, pgwire.Explain("open", pgwire.ExplainPrepared(err))
	}
	s.shortWaitSession, s.waitSession = s.newSession(table.ShortLockTimeout), s.newSession(pgwire.Millis(opt.LockTimeout))
	s.waitSlots = make(chan struct{}, max(1, opt.Connections-2*opt.Flushers-1))
	s.claims, s.settles, s.replays, s.confirms = s.newClaimBatcher(), s.newSettleBatcher(), s.newReplayBatcher(), s.newConfirmBatcher()
	return s, nil
}

// makeStatements makes the statements. For spelled see table.NewStatements.
func (s *Store) makeStatements(spelled bool) {
	s.sql, s.txSQL = table.NewStatements(s.options.Schema, s.options.clock, s.options.RelaxedClaims, spelled), table.NewStatements(s.options.Schema, s.options.clock, false, spelled)
}

func (s *Store) connect(ctx context.Context, cfg *pgxpool.Config) (err error) {
	if s.appPool == nil {
		s.ownsAppPool = true
		if err = s.openAppPool(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.connectOwn(ctx, pgwire.PinAll(cfg, table.PlannerSettings)); err != nil {
		if pgwire.Code(err) != pgwire.ProtocolViolation {
			return err
		}
		// A pooler refused the settings. The settings are for the plans of
		// prepared statements, which such a pooler does not pass on either.
		if err := s.connectOwn(ctx, cfg); err != nil {
			return err
		}
	}
	if err := errors.Join(pgwire.CheckFormats(ctx, s.ownPool), pgwire.CheckFormats(ctx, s.appPool), pgwire.CheckWarnings(ctx, s.ownPool)); err != nil {
		return err
	}
	if err := pgwire.CheckPrepared(ctx, s.ownPool); err != nil {
		return err
	}
	// A pooler may have ignored the settings, or the URL may override them.
	if err := s.ownPool.QueryRow(ctx, s.sql.HasPlannerSettings).Scan(&s.hasPlannerSettings); err != nil {
		return err
	}
	prepare := s.schema().Migrate
	if s.options.NoMigrate {
		prepare = s.schema().Check
	}
	if err := prepare(ctx, s.ownPool); err != nil {
		return err
	}
	if spelled, err := s.spelled(ctx); err != nil {
		return err
	} else if spelled {
		s.makeStatements(true)
	}
	tables, err := s.schema().Tables(ctx, s.ownPool)
	if err != nil {
		return err
	}
	s.parts = s.partsOf(tables)
	var number int
	if err := s.ownPool.QueryRow(ctx, s.sql.Meta).Scan(&s.id, &number); err != nil || !s.options.Notify {
		return err
	}
	s.listener, err = notify.Listen(ctx, sized(cfg, 2+spareConns), s.options.channel(), s.options.echo)
	return err
}

// connectOwn opens the connections that are the store's own.
func (s *Store) connectOwn(ctx context.Context, cfg *pgxpool.Config) (err error) {
	s.closeOwn()
	if s.ownPool, err = pgxpool.NewWithConfig(ctx, sized(cfg, s.options.Connections)); err != nil {
		return err
	}
	if s.renewalPool, err = pgxpool.NewWithConfig(ctx, sized(cfg, 1+spareConns)); err != nil {
		return err
	}
	return s.ownPool.Ping(ctx)
}

func (s *Store) closeOwn() {
	for _, p := range []*pgxpool.Pool{s.ownPool, s.renewalPool} {
		if p != nil {
			p.Close()
		}
	}
}

// openAppPool opens the connections of Atomic.
func (s *Store) openAppPool(ctx context.Context, cfg *pgxpool.Config) (err error) {
	if s.appPool, err = pgxpool.NewWithConfig(ctx, pgwire.PinFormats(cfg)); err != nil {
		return err
	}
	if err = s.appPool.Ping(ctx); pgwire.Code(err) == pgwire.ProtocolViolation { // see connect
		s.appPool.Close()
		s.appPool, err = pgxpool.NewWithConfig(ctx, cfg.Copy())
	}
	if err != nil {
		return err
	}
	return pgwire.CheckWarnings(ctx, s.appPool)
}

// spareConns is how many connections a pool may have in addition, in case one hangs.
// The driver closes a connection that was given up only after up to 15 s, and one that
// is connecting after up to two minutes. In that time other callers use a spare one.
const spareConns = 3

// sized is cfg with up to n connections, which are opened when they are needed.
func sized(cfg *pgxpool.Config, n int) *pgxpool.Config {
	cfg = cfg.Copy()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = int32(n), 0, 0
	return cfg
}

// Close waits until the claims and settlements that are queued have their answers, and
// closes the store's connections. If Open made the store, it also waits until the running
// transactions of Atomic have ended. Methods that are called later return ErrClosed.
// Close may be called again.
func (s *Store) Close() error {
	s.closed.Store(true)
	if s.claims != nil {
		s.claims.Close()
		s.settles.Close()
		s.replays.Close()
		s.confirms.Close()
	}
	if s.listener != nil {
		s.listener.Close()
	}
	s.closeOwn()
	if s.ownsAppPool && s.appPool != nil {
		s.appPool.Close()
	}
	return nil
}

// Check reads the server's settings, and returns one error that joins an ErrUnsafe for
// each setting under which the store cannot keep its promises. If the tables do not fit
// this version of the package, it returns ErrSchema, and if its role lacks rights on them, an
// error with the commands that grant them. It changes nothing. It implements store.Checker.
func (s *Store) Check(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return pgwire.Explain("check", s.check(ctx))
}

// settings are the settings that Check reads.
type settings struct {
	synchronousCommit, fsync, fullPageWrites, isolation string
	replica, readOnly, hasStandby                       bool
	version, maxConnections                             int
}

const readSettings = `SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
	current_setting('default_transaction_isolation'), pg_is_in_recovery(), current_setting('default_transaction_read_only')::boolean,
	current_setting('server_version_num')::int, current_setting('max_connections')::int, current_setting('synchronous_standby_names') <> ''`

func (s *Store) check(ctx context.Context) error {
	var current settings
	err := s.ownPool.QueryRow(ctx, readSettings).Scan(&current.synchronousCommit, &current.fsync, &current.fullPageWrites, &current.isolation,
		&current.replica, &current.readOnly, &current.version, &current.maxConnections, &current.hasStandby)
	if err != nil {
		return err
	}
	if err := s.schema().Check(ctx, s.ownPool); err != nil {
		return err
	}
	own := s.options.Connections + 1 + spareConns
	if s.options.Notify {
		own += 2 + spareConns
	}
	return errors.Join(s.schema().CheckRights(ctx, s.ownPool), current.unsafe(own, int(s.appPool.Config().MaxConns)))
}

// unsafe returns an error for each setting under which the store cannot keep its
// promises. The store opens own connections, and the pool of Atomic has pool
// connections.
func (s *settings) unsafe(own, pool int) error {
	var errs []error
	for _, f := range []struct {
		wrong     bool
		name, why string
	}{
		{s.synchronousCommit == "off", "synchronous_commit is off", "a crash of the server takes back the last commits, and what they recorded runs again; set it to on (see Options.RelaxedClaims)"},
		{s.synchronousCommit == "local" && s.hasStandby, "synchronous_commit is local", "commits do not wait for the synchronous standby, and the last ones are lost if it takes over; set it to on, remote_write or remote_apply"},
		{s.fsync != "on", "fsync is " + s.fsync, "a crash of the system can destroy the database; set it to on"},
		{s.fullPageWrites != "on", "full_page_writes is " + s.fullPageWrites, "a crash of the system can destroy pages; set it to on, unless the file system never tears a page"},
		{s.replica, "the server is a replica", "it cannot be written to, and shows the past; connect to the primary (target_session_attrs=read-write)"},
		{s.readOnly && !s.replica, "default_transaction_read_only is on", "nothing can be claimed; set it to off for this role"},
		{s.isolation != "read committed", fmt.Sprintf("default_transaction_isolation is %q", s.isolation), "statements that meet others fail (40001) instead of waiting; set it to \"read committed\" for this role"},
		{s.version < 140000, fmt.Sprintf("server_version_num is %d", s.version), "version 14 is the oldest that works"},
		{pool < 4, fmt.Sprintf("the pool has %d connections", pool), "each transaction of Atomic.Run holds one for as long as its handler runs; set pool_max_conns to 4 at least"},
		{own+pool > s.maxConnections, fmt.Sprintf("max_connections is %d", s.maxConnections), fmt.Sprintf("this process alone may open %d; raise it, or lower Options.Connections and pool_max_conns", own+pool)},
	} {
		if f.wrong {
			errs = append(errs, fmt.Errorf("%w: %s: %s", ErrUnsafe, f.name, f.why))
		}
	}
	return errors.Join(errs...)
}

// spelled reports whether the columns of the table are in another order than in the
// migration.
func (s *Store) spelled(ctx context.Context) (bool, error) {
	rows, err := s.ownPool.Query(ctx, `SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname = $2::text AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, s.options.Schema, table.Name)
	if err != nil {
		return false, err
	}
	are, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return len(are) < len(table.Columns) || !slices.Equal(are[:len(table.Columns)], table.Columns), err
}

// Migrations returns the scripts that create the tables, for applications that run
// migrations themselves: 0001_init.up.sql and so on. Run them in order, each in one
// transaction. The .down.sql scripts undo them, except for the schema "semel" itself.
// Each up script sets semel_meta.schema to its number. The scripts name the schema
// "semel", with the quotes; to use another one, replace that by its quoted name.
func Migrations() fs.FS { return schema.Scripts() }

// PartitionedInit returns the script 0001_init.up.sql of [Migrations] with the table of
// records in n partitions, 1 to 256; see Options.Partitions. The other scripts are
// the same with and without partitions.
func PartitionedInit(n int) (string, error) { return schema.PartitionedScript(n) }

// Migrate runs the migrations that the schema has not had, in one transaction. The first
// migration creates the schema. If a newer version of the package has changed the schema
// in a way that this version does not understand, Migrate returns ErrSchema. It
// implements store.Migrator.
func (s *Store) Migrate(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return pgwire.Explain("migrate", s.schema().Migrate(ctx, s.ownPool))
}

func (s *Store) schema() schema.Schema {
	return schema.Schema{Name: s.options.Schema, Partitions: s.options.Partitions}
}

func (s *Store) quoted() string { return s.schema().Quoted() }
