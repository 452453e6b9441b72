package kafkapg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// try runs the handler for all spans and moves their watermarks, in one
// transaction. unmoved is the span whose watermark was the cause of an error.
func (b *offsetsBatch) try(ctx context.Context, spans []*span) (unmoved *span, err error) {
	var ms []*consume.Message
	for _, s := range spans {
		for _, i := range s.indexes {
			ms = append(ms, b.items[i].Message)
		}
	}
	last := spans[len(spans)-1]
	err = last.position.watermark.Do(ctx, last.first, last.next, func(ctx context.Context, tx pgx.Tx) error {
		unmoved = nil
		if err := b.handler.run(ctx, handlerTx{tx}, ms); err != nil {
			return &handlerError{err, tx.Conn().IsClosed(), isServerFailure(err)}
		}
		for _, s := range spans[:len(spans)-1] {
			if err := s.position.watermark.Move(ctx, tx, s.first, s.next); err != nil {
				unmoved = s
				return err
			}
		}
		unmoved = last
		return nil
	})
	if err == nil {
		for _, s := range spans {
			s.position.watermark.Moved(s.next)
		}
	}
	return unmoved, err
}

// handlerError is an error that a handler returned.
type handlerError struct {
	error
	connectionBroken bool
	serverFailed     bool
}

func (e *handlerError) Unwrap() error { return e.error }

// mayBeOneMessage reports whether one message among others may be the cause of an
// error: an error of the handler, a COMMIT that the server refused or that broke
// the connection, or a conflict, which a smaller transaction may avoid.
func mayBeOneMessage(err error) bool {
	if h, ok := errors.AsType[*handlerError](err); ok {
		return !h.serverFailed
	}
	return errors.Is(err, pgstore.ErrBusy) || errors.Is(err, pgkafka.ErrBroken) || pgkafka.RefusedForContent(err)
}

// isServerFailure reports whether the server cannot write at all, whatever the
// message: it is a standby (25006), it lacks resources (53), or its system has an
// error (58).
func isServerFailure(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (p.Code == "25006" || len(p.Code) == 5 && (p.Code[:2] == "53" || p.Code[:2] == "58"))
}

// handlerTx is a transaction that the handler can neither commit nor roll back.
type handlerTx struct{ pgx.Tx }

var errHandlerEndsTx = errors.New("kafkapg: the handler must not commit or roll back its transaction; return an error to undo it")

// Commit implements pgx.Tx.
func (handlerTx) Commit(context.Context) error { return errHandlerEndsTx }

// Rollback implements pgx.Tx.
func (handlerTx) Rollback(context.Context) error { return errHandlerEndsTx }
