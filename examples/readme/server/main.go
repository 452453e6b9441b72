package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/sqlitestore"
)

// account names the authenticated account. Replace basic authentication by your own.
func account(r *http.Request) (string, error) {
	name, _, ok := r.BasicAuth()
	if !ok {
		return "", errors.New("not authenticated")
	}
	return name, nil
}

func pay(w http.ResponseWriter, r *http.Request) {
	x, _ := semel.FromContext(r.Context())
	fmt.Println("charging", x.Tenant(), "with the bank's key", x.DownstreamKey("bank"))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintln(w, "payment 4711")
}

func routes(guard *semel.Guard) (http.Handler, error) {
	once, err := semelhttp.Middleware(guard, account, nil)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", once(http.HandlerFunc(pay)))
	return mux, nil
}

func main() {
	store, err := sqlitestore.Open(context.Background(), "semel.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := semel.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := routes(guard)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", handler))
}
