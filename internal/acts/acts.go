// Package acts has the words for what operators do and for the results: the same ones in the
// audit trail, in the log lines of the commands and in those of the console.
package acts

import (
	"context"
	"errors"
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// The acts.
const (
	Resolve     = "resolve" // a verdict about a call in doubt
	Reopen      = "reopen"  // a failed call runs again
	SagaRetry   = "saga retry"
	SagaBack    = "saga back"
	SagaSkip    = "saga skip"
	OutboxRetry = "outbox retry"
	OutboxDrop  = "outbox drop"
	Erase       = "erase"
)

// The places where an act is done.
const (
	ViaCommand = "command"
	ViaConsole = "console"
)

// The results of an act.
const (
	Done    = "done"
	NotDone = "not done"
	// PartlyDone is the result of an erasure that has left records.
	PartlyDone = "partly done"
	// NothingToErase is the result of an erasure that found no record. It is no proof that a
	// tenant was erased: the tenant can be misspelt, or stored as a hash.
	NothingToErase = "nothing to erase"
	// Unknown is the result if the store did not answer.
	Unknown = "unknown"
)

// ErrNothingChanged marks errors after which nothing was changed.
var ErrNothingChanged = errors.New("nothing was changed")

// ErrPartly marks errors after which a part of the act is done.
var ErrPartly = errors.New(PartlyDone)

// Result says in words what an act that ended with err has done.
func Result(err error) string {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrPartly):
		return PartlyDone
	}
	for _, refusal := range []error{ErrNothingChanged, store.ErrChanged, store.ErrNotFound, semel.ErrInvalid, outbox.ErrNotFound, outbox.ErrState} {
		if errors.Is(err, refusal) {
			return NotDone
		}
	}
	return Unknown
}

// NamingError is an error whose text has the name of a tenant or a key.
type NamingError interface {
	error
	WithoutNames() string
}

// Text is the text of an error for logs and the audit trail, which have no such names.
func Text(err error) string {
	if n, ok := errors.AsType[NamingError](err); ok {
		return n.WithoutNames()
	}
	return err.Error()
}

// Log writes a line about an act with its result and, if it is not nil, its error.
func Log(ctx context.Context, log *slog.Logger, act, via, result string, err error, attrs ...any) {
	level := slog.LevelInfo
	switch result {
	case NotDone, PartlyDone:
		level = slog.LevelWarn
	case Unknown:
		level = slog.LevelError
	}
	attrs = append([]any{"via", via}, append(attrs, "result", result)...)
	if err != nil {
		attrs = append(attrs, "error", Text(err))
	}
	log.Log(ctx, level, act, attrs...)
}
