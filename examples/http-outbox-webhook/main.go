// Command http-outbox-webhook takes orders over HTTP and tells each customer's server of
// them. The order, the answer to its request and the message commit in one transaction in
// SQLite. A publisher sends the message as a signed webhook, until the customer's server
// takes it. See its README.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/semel-go/semel/outbox/webhook"
)

// customers are the endpoints that the customers have given to the shop.
var customers = map[string]webhook.Endpoint{
	"ann": {URL: "http://127.0.0.1:9001/", Secret: []byte("a secret of 32 bytes for ann ...")},
	"bob": {URL: "http://127.0.0.1:9002/", Secret: []byte("a secret of 32 bytes for bob ...")},
}

func main() {
	db := flag.String("db", "", "the SQLite file (default: shop.db, or the customer's name and .db)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *db, flag.Arg(0), flag.Arg(1), os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, db, verb, name string, out io.Writer) error {
	endpoint, known := customers[name]
	switch {
	case verb == "serve":
		return serveShop(ctx, path(db, "shop"), "127.0.0.1:8080", customers)
	case verb == "receive" && known:
		r, err := newReceiver(ctx, path(db, name), endpoint.Secret, out)
		if err != nil {
			return err
		}
		defer r.close()
		to, err := url.Parse(endpoint.URL)
		if err != nil {
			return err
		}
		return serve(ctx, to.Host, r)
	}
	return fmt.Errorf("%q: choose serve, receive ann or receive bob", verb)
}

func path(db, name string) string {
	if db != "" {
		return db
	}
	return name + ".db"
}

// serve answers requests until ctx ends.
func serve(ctx context.Context, address string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		ended <- server.Shutdown(late)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
