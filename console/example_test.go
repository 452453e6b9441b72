package console_test

import (
	"log"
	"net/http"

	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store/memstore"
)

// The console in a site that has a log-in of its own.
func ExampleNew() {
	userOf := func(r *http.Request) string { return "" } // of the log-in
	st, box, mux := memstore.New(nil), outboxtest.NewMemory(), http.NewServeMux()
	mount := func() error {
		pages, err := console.New(st, &console.Options{
			Operator: func(r *http.Request) string { return userOf(r) }, // "" may only read
			Sagas:    []string{"order"},
			Outbox:   box,
		})
		if err != nil {
			return err
		}
		mux.Handle("/admin/semel/", http.StripPrefix("/admin/semel", pages))
		return nil
	}
	if err := mount(); err != nil {
		log.Fatal(err)
	}
	// Output:
}
