package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
)

// InSQL is In for a transaction of database/sql with the driver of pgx: one
// that the caller has begun on conn, and commits or rolls back. The handler
// writes through its *sql.Tx. It is not safe for concurrent use, and nothing
// else may use conn while a call runs, but the handler. Begin the transaction
// with a context that does not end before it (context.WithoutCancel): when it
// ends, database/sql rolls back on the same connection, at any moment.
func (a *Atomic) InSQL(conn *sql.Conn) (semel.Runner, error) {
	on, err := openOn(conn)
	if err != nil {
		return nil, fmt.Errorf("pgstore: InSQL: %w", err)
	}
	return inSQL{a, on}, nil
}

// openOn is the driver's connection below conn, on which a transaction is open.
func openOn(conn *sql.Conn) (on *pgx.Conn, err error) {
	if conn == nil {
		return nil, errors.New("the connection is nil; begin the transaction by conn.BeginTx on one of db.Conn")
	}
	err = conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the driver's connection is a %T; open the database with the driver \"pgx\"", driver)
		}
		on = c.Conn()
		return nil
	})
	if err == nil && on.PgConn().TxStatus() != 'T' {
		err = errors.New("no transaction is open on the connection; begin it with conn.BeginTx")
	}
	return on, err
}

type inSQL struct {
	a  *Atomic
	on *pgx.Conn
}

// Run implements semel.Runner.
func (r inSQL) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.a.runIn(ctx, r.on, call, fn)
}
