package kafkapg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/driver"
)

// Handler does the work of messages, in their order, by tx alone: best in one
// statement for all. If it returns an error, nothing of it has happened, and it
// is run again for halves of them: so the error may be of any one. It may run
// again in other cases, too, and must have no effect but in tx, which it
// neither commits nor rolls back. A panic counts as an error.
type Handler func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error

// failedTx is the state of a transaction in which a statement has failed.
const failedTx = 'E'

var errSwallowed = errors.New("a statement of the handler failed, and it returned nil")

// safely turns a panic into an error, and a failure of the transaction that is not
// told: it is the handler's, and counts as its attempt.
func (h Handler) safely(ctx context.Context, tx pgx.Tx, ms []*consume.Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handler panicked: %v", v)
		}
	}()
	if err = h(ctx, tx, ms); err == nil && (tx.Conn().IsClosed() || tx.Conn().PgConn().TxStatus() == failedTx) {
		err = errSwallowed
	}
	return err
}

// defaultAttempts is that of consume.Options.MaxAttempts.
const defaultAttempts = 10

func attempts(o *consume.Options) int {
	if o == nil || o.MaxAttempts == 0 {
		return defaultAttempts
	}
	return o.MaxAttempts
}

// limited is the error of an attempt of a message that is alone: the last one
// is final.
func limited(err error, attempt, most int) error {
	if f, ok := errors.AsType[*semel.Failure](err); err == nil || ok && f != nil || most < 0 || attempt < most || driver.IsNoEffect(err) {
		return err
	}
	return exhausted(most, err)
}

func exhausted(most int, last error) error {
	return &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: fmt.Sprintf("all %d attempts failed; the last: %v", most, last)}
}

// waits is the end of a message behind one that is held or to be retried.
func waits(op string) error {
	return &semel.Error{Reason: semel.ErrReleased, Operation: op, Cause: errBefore}
}

var errBefore = errors.New("kafkapg: one before it is not done")
