package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/semel-go/semel/cmd/semel/internal/admin"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
)

// opened is what a start has opened.
type opened struct {
	store   storeurl.Handle
	admin   net.Listener   // nil: there is none
	closers []func() error // the last one is called first
}

func (o *opened) close() (err error) {
	for i := len(o.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, o.closers[i]())
	}
	return err
}

// listen opens the listener of the admin server. Without an address it does nothing.
func (o *opened) listen(ctx context.Context, addr string) (err error) {
	if addr == "" {
		return nil
	}
	if o.admin, err = program.Listen(ctx, "--admin-listen", addr); err != nil {
		return err
	}
	o.closers = append(o.closers, func() error {
		_ = o.admin.Close() // the admin server may have closed it
		return nil
	})
	return nil
}

// serveAdmin serves the health, the readiness and the metrics until stop is called.
// Without a listener it does nothing.
func serveAdmin(l net.Listener, ready func(context.Context) error, counts io.WriterTo, log *slog.Logger) (stop func()) {
	if l == nil {
		return func() {}
	}
	server := admin.Server(admin.Handler(ready, counts, log), log)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin server ended; the program goes on without it", "error", err)
		}
	}()
	log.Info("admin listening", "addr", l.Addr().String())
	return func() { _ = server.Close() } // a prober asks again
}
