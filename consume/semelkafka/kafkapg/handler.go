package kafkapg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	semeldriver "github.com/semel-go/semel/driver"
)

// Handler does the work of messages, which are in the order of their offsets. It
// writes with tx only, best with one statement for all messages, and neither
// commits tx nor rolls it back. ctx ends some time after Serve is to end, and has no
// deadline. If a statement may get no answer, give it one with context.WithTimeout.
//
// The handler may leave tx idle, for example during a request to another service, for at
// most pgstore.Options.MaxIdleTx, 30 s by default. After that the server ends tx, and this
// counts as an error of the handler.
//
// An error or a panic undoes the writes of all the messages. Because any of them
// may be the cause, the handler runs again for each half of them, until the
// failing message is alone. It may run again for other reasons too, so it must
// have no effects outside of tx.
type Handler func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error

// hasFailed reports whether a transaction can no longer be committed. The transactions
// of pgstore tell it themselves, because asking them for the connection costs a round
// trip.
func hasFailed(tx pgx.Tx) bool {
	if own, ok := tx.(handlerTx); ok {
		tx = own.Tx
	}
	if t, ok := tx.(interface{ Failed() bool }); ok {
		return t.Failed()
	}
	return tx.Conn().IsClosed() || tx.Conn().PgConn().TxStatus() == 'E'
}

var errHiddenFailure = errors.New("a statement of the handler failed, and the handler returned nil")

// run calls the handler. A panic becomes an error, and so does a failed statement
// or a broken connection that the handler does not report: it counts as an
// attempt.
func (h Handler) run(ctx context.Context, tx pgx.Tx, ms []*consume.Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handler panicked: %v", v)
		}
	}()
	if err = semeldriver.ReadableError(h(ctx, tx, ms)); err == nil && hasFailed(tx) {
		err = errHiddenFailure
	}
	return err
}

// defaultMaxAttempts is the default of consume.Options.MaxAttempts.
const defaultMaxAttempts = 10

// maxAttemptsOf returns consume.Options.MaxAttempts or its default. Below zero:
// there is no limit.
func maxAttemptsOf(o *consume.Options) int {
	if o == nil || o.MaxAttempts == 0 {
		return defaultMaxAttempts
	}
	return o.MaxAttempts
}

// limitAttempts returns the error of an attempt of a single message. The error of
// the last attempt becomes final.
func limitAttempts(err error, attempt, maxAttempts int) error {
	if f, ok := errors.AsType[*semel.Failure](err); err == nil || ok && f != nil || maxAttempts < 0 || attempt < maxAttempts || semeldriver.IsNoEffect(err) {
		return err
	}
	return exhausted(maxAttempts, err)
}

func exhausted(maxAttempts int, last error) error {
	return &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: fmt.Sprintf("all %d attempts failed; the last: %v", maxAttempts, last)}
}

// delayed returns the error of a message that waits for an earlier one.
func delayed(operation string) error {
	return &semel.Error{Reason: semel.ErrReleased, Operation: operation, Cause: errEarlierNotDone}
}

var errEarlierNotDone = errors.New("kafkapg: an earlier message, which this one must not overtake, is not done")
