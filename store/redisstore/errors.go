package redisstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

// Errors that a caller can handle. They wrap the client's error, if there is
// one.
var (
	// ErrUnsafe: with a setting of the server the store cannot keep its
	// promises.
	ErrUnsafe = errors.New("unsafe setting")
	// ErrNotAcknowledged: fewer replicas than Options.Replicas acknowledged
	// the change in time, or with Options.Fsync it was not on a disk. Nothing
	// runs. A refused claim is not taken back: it holds its key until its
	// lease ends, or until the same claim is sent again and acknowledged.
	ErrNotAcknowledged = errors.New("too few acknowledged it")
	// ErrUnconfirmed: the settlement is recorded, but was not acknowledged in
	// time, as above: a fail-over or crash now may lose it. Settling again
	// waits again. A duplicate that finds such a record gets this error, too, and
	// the record without its outcome.
	ErrUnconfirmed = errors.New("recorded, but its durability is unconfirmed")
	// ErrFull: the server is at its maxmemory. Nothing was changed; replays
	// go on, unless they must be acknowledged (Options.Replicas, Options.Fsync).
	ErrFull = errors.New("no memory left on the server")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("redisstore: closed")
)

// explain adds the method to an error, maps the client's errors to those of this
// package, and marks which calls the error concerns. Errors about a record stay as
// they are.
func (s *Store) explain(method string, err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrLeaseLost), errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, coalesce.ErrClosed), errors.Is(err, redis.ErrClosed):
		return ErrClosed
	case redis.HasErrorPrefix(err, "OOM"):
		err = fmt.Errorf("%w: %w", ErrFull, err)
	case moved(err): // the slot is on its way to another node
		err = fmt.Errorf("%w: %w", store.ErrBusy, err)
	}
	return store.WithExtent(fmt.Errorf("redisstore: %s: %w", method, err), s.extent(err))
}

// extent says which calls an error concerns: in a cluster as a rule those of one
// node.
func (s *Store) extent(err error) store.Extent {
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"), errors.Is(err, errCollision):
		return store.ExtentCall
	case s.cluster == nil, errors.Is(err, ErrUnsafe), redis.HasErrorPrefix(err, "CLUSTERDOWN The cluster is down"):
		return store.ExtentStore
	}
	return store.ExtentPart
}

// noScript reports that the server does not have the script, and so has run
// nothing.
func noScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// refusesWrites reports that the server has run the script up to its first write.
func refusesWrites(err error) bool {
	return slices.ContainsFunc([]string{"OOM", "NOREPLICAS", "MISCONF", "READONLY"}, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// unexpected is the error of an answer that no script of the store returns.
func unexpected(val any) error {
	return fmt.Errorf("the server's answer is a %T, which no script of the store returns; is a proxy in between?", val)
}
