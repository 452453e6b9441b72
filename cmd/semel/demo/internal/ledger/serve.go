package ledger

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Serve runs a ledger until ctx ends: on the address, over the file at path.
// Serve listens before it opens the file, so that two ledgers never share a file.
func Serve(ctx context.Context, listen, path string, work time.Duration) (err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	b, err := Open(path)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s := &http.Server{Handler: &Handler{Book: b, Work: work}, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err = <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return s.Shutdown(end)
}
