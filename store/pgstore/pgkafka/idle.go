package pgkafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// idleTimeout is the server's code for a transaction that was idle for too long.
const idleTimeout = "25P03"

// idleCheck finds out whether the server has ended the transaction of a handler that left it
// idle. The next statement does not always tell: over a Unix socket it cannot be sent, and
// a pooler passes on a code of its own.
type idleCheck struct {
	conn    *pgx.Conn
	limit   time.Duration // MaxIdleTx
	lastUse time.Time
	err     error // wraps ErrIdle
}

// use is handlertx.State.BeforeUse. After a long pause it looks at the connection first.
func (c *idleCheck) use(context.Context) error {
	pause := time.Since(c.lastUse)
	c.lastUse = time.Now()
	if c.err != nil || pause < c.limit || c.conn.IsClosed() || c.conn.PgConn().IsBusy() {
		return c.err
	}
	err := receive(c.conn.PgConn())
	if code := pgwire.Code(err); err != nil && (code == "" || code == idleTimeout || strings.HasPrefix(code, "08")) {
		c.err = c.idleError(err)
	}
	return c.err
}

// receive reads the messages that the server has sent meanwhile. It returns nil if the
// connection is open.
func receive(conn *pgconn.PgConn) error {
	if conn.Conn().SetReadDeadline(time.Now().Add(50*time.Millisecond)) != nil {
		return nil
	}
	defer func() { _ = conn.Conn().SetReadDeadline(time.Time{}) }()
	for {
		if _, err := conn.ReceiveMessage(context.Background()); pgconn.Timeout(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// explain wraps an error of the handler, or of the change of the watermark, in ErrIdle if
// the pause of the handler is its cause.
func (c *idleCheck) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrIdle):
		return err
	case c.err != nil:
		return fmt.Errorf("%w; it returned: %w", c.err, err)
	case pgwire.Code(err) == idleTimeout && pgwire.EndsConnection(err):
		return c.idleError(err)
	}
	return err
}

func (c *idleCheck) idleError(cause error) error {
	return fmt.Errorf("%w for longer than pgstore.Options.MaxIdleTx, %v, so the server ended it; do slow work outside of the handler, or raise MaxIdleTx: %w", ErrIdle, c.limit, cause)
}
