package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/sweep"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	store, err := sqlitestore.Open(ctx, "semel.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := sweep.Run(ctx, store, nil); err != nil {
		log.Print(err)
	}
}
