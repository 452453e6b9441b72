package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"modernc.org/sqlite"

	"github.com/semel-go/semel"
)

// late is the driver's connector, but told is called when a statement has been
// carried out and its caller does not know yet: where the driver gives the
// error of a context that has ended meanwhile, and not what came of it.
type late struct {
	driver.Connector
	told func(query string)
}

func (l *late) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := l.Connector.Connect(ctx)
	return lateConn{c, l}, err
}

type lateConn struct {
	driver.Conn
	*late
}

func (c lateConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c lateConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c lateConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	c.told(query)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return res, err
}

// A call that failed has left nothing in the application's transaction, even if
// that is committed all the same.
func TestIn_ContextEndsDuringCall_ResultMatchesTransaction(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"SAVEPOINT semel_0", "SAVEPOINT semel_1", "RELEASE semel_1", "RELEASE semel_0"} {
		t.Run(query, func(t *testing.T) {
			p := openShop(t, nil)
			c, err := sqlite.NewConnector("file:" + p.s.path + "?" + immediate)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			db := sql.OpenDB(&late{c, func(is string) {
				if is == query {
					cancel()
				}
			}})
			defer db.Close()
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			err = semel.Once(ctx, p.a.In(tx), call("k"), func(ctx context.Context, x *semel.Execution) error {
				_, err := pay("k", nil)(ctx, x, tx)
				return err
			})
			if ctx.Err() == nil {
				t.Fatal("the statement was not executed")
			}
			told := []string{}
			if err == nil {
				told = []string{"k"}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			p.want(t, told...)
			if _, gerr := p.a.g.Get(t.Context(), semel.Call{Operation: "pay", Tenant: "ann", Key: "k"}); (gerr == nil) != (err == nil) {
				t.Errorf("the call got %v, its record %v", err, gerr)
			}
		})
	}
}
