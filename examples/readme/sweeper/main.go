package main

import (
	"context"
	"errors"
	"log"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/sweep"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	store, err := sqlitestore.Open(ctx, "semel.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = sweep.Run(ctx, store, nil)
	if err = errors.Join(err, store.Close()); err != nil {
		log.Fatal(err)
	}
}
