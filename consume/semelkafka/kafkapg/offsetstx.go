package kafkapg

import (
	"context"
	"errors"
	"strings"

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
	err = last.position.watermark.Do(ctx, last.Span, func(ctx context.Context, tx pgx.Tx) error {
		unmoved = nil
		if err := b.handler.run(ctx, handlerTx{tx}, ms); err != nil {
			return &handlerError{err, tx.Conn().IsClosed()}
		}
		for _, s := range spans[:len(spans)-1] {
			if err := s.position.watermark.Move(ctx, tx, s.Span); err != nil {
				unmoved = s
				return err
			}
		}
		unmoved = last
		return nil
	})
	if err == nil {
		for _, s := range spans {
			s.position.watermark.Moved(s.Span)
		}
	}
	return unmoved, err
}

// handlerError is an error that a handler returned.
type handlerError struct {
	error
	connectionBroken bool
}

func (e *handlerError) Unwrap() error { return e.error }

// mayBeOneMessage reports whether one message among others may be the cause of an
// error: an error of the handler, a transaction that the handler has ended or left idle, rows
// that it has left open, a COMMIT that the server refused or that broke the connection, or a
// conflict, which a smaller transaction may avoid.
func mayBeOneMessage(err error) bool {
	if h, ok := errors.AsType[*handlerError](err); ok {
		return !isServerFailure(h.error)
	}
	return errors.Is(err, pgkafka.ErrEnded) || errors.Is(err, pgkafka.ErrUnread) || errors.Is(err, pgkafka.ErrIdle) || errors.Is(err, pgstore.ErrBusy) || errors.Is(err, pgkafka.ErrBroken) || pgkafka.RefusedForContent(err)
}

// isServerFailure reports whether the server cannot write at all, whatever the
// message: its disk is full (53100), or its system has an error (58).
func isServerFailure(err error) bool {
	code := serverCode(err)
	return code == "53100" || strings.HasPrefix(code, "58")
}

// mayBeServerFailure reports whether the server may be the cause, or one message: a
// standby and a message that makes its transaction read-only have the same code
// (25006), and so have a server without memory and a message that exceeds a limit (53).
func mayBeServerFailure(err error) bool {
	code := serverCode(err)
	return code == "25006" || strings.HasPrefix(code, "53")
}

// serverCode returns the code of an error of the server, and nothing if a function of
// the application raised it.
func serverCode(err error) string {
	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgkafka.RefusedForContent(err) {
		return ""
	}
	return p.Code
}

// handlerTx is a transaction that the handler can neither commit nor roll back.
type handlerTx struct{ pgx.Tx }

var errHandlerEndsTx = errors.New("kafkapg: the handler must not commit or roll back its transaction; return an error to undo it")

// Commit implements pgx.Tx.
func (handlerTx) Commit(context.Context) error { return errHandlerEndsTx }

// Rollback implements pgx.Tx.
func (handlerTx) Rollback(context.Context) error { return errHandlerEndsTx }
