package pgwire

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errNotReplicated says that the server has committed, and warned that it did not wait for its
// synchronous standby. The commit may be lost if the standby takes over.
var errNotReplicated = errors.New("the server has committed, but a synchronous standby may not have the commit, because the wait for it was cancelled")

// CommitWatch finds commits that the server has answered without waiting for its
// synchronous standby, because somebody has cancelled the wait. The server then sends a
// warning before the answer. Safe for concurrent use.
type CommitWatch struct{ warnings atomic.Int64 }

// Watch makes connections that are opened with cfg report their warnings to w. The
// handler of notices that cfg, or its BeforeConnect, has set is called too.
func (w *CommitWatch) Watch(cfg *pgxpool.Config) {
	before := cfg.BeforeConnect
	cfg.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		if before != nil {
			if err := before(ctx, c); err != nil {
				return err
			}
		}
		next := c.OnNotice
		c.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
			if isReplicationWarning(n) {
				w.warnings.Add(1)
			}
			if next != nil {
				next(conn, n)
			}
		}
		return nil
	}
}

// isReplicationWarning recognizes the warning by the function of the server that sends
// it, because the text depends on lc_messages.
func isReplicationWarning(n *pgconn.Notice) bool {
	return n.Routine == "SyncRepWaitForLSN" || strings.Contains(n.Message, "wait for synchronous replication")
}

// Count is the number of warnings so far.
func (w *CommitWatch) Count() int64 { return w.warnings.Load() }

// Run runs fn, which commits. If a warning arrives meanwhile, on any connection, Run
// returns errNotReplicated instead of nil: the caller then treats the commit as
// unanswered, which is harmless if the warning was for another commit.
func (w *CommitWatch) Run(fn func() error) error {
	before := w.Count()
	err := fn()
	if err == nil && w.Count() != before {
		err = errNotReplicated
	}
	return err
}
