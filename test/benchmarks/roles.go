package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore"
)

// This program starts itself in a role, as a server in a process of its own.
const roleVar, targetVar = "SEMEL_BENCH_ROLE", "SEMEL_BENCH_TARGET"

// The roles.
const (
	roleDynamo     = "dynamo"     // a stub of DynamoDB
	roleHandler    = "handler"    // an HTTP handler without Semel
	roleMiddleware = "middleware" // the same handler in semelhttp.Middleware, with the store of targetVar
	roleBareProxy  = "bare proxy" // httputil.ReverseProxy in front of targetVar
)

// role starts this program in a role.
func (l *lab) role(role, target string) (*program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) //nolint:noctx // it runs until it is killed
	cmd.Env = append(os.Environ(), roleVar+"="+role, targetVar+"="+target)
	return l.start(cmd)
}

// play plays a role until the process is killed.
func play(role, target string) error {
	h, err := handlerOf(role, target)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stderr, "msg=listening addr=%s\n", listener.Addr()); err != nil {
		return err
	}
	return (&http.Server{Handler: h}).Serve(listener)
}

func handlerOf(role, target string) (http.Handler, error) {
	switch role {
	case roleDynamo:
		return newDynamo(), nil
	case roleHandler:
		return http.HandlerFunc(pay), nil
	case roleMiddleware:
		st, err := openStore(context.Background(), target)
		if err != nil {
			return nil, err
		}
		guard, err := semel.New(st, nil)
		if err != nil {
			return nil, err
		}
		once, err := semelhttp.Middleware(guard, func(*http.Request) (string, error) { return tenant, nil }, nil)
		if err != nil {
			return nil, err
		}
		mux := http.NewServeMux()
		mux.Handle("POST /payments", once(http.HandlerFunc(pay)))
		return mux, nil
	case roleBareProxy:
		to, err := url.Parse(target)
		if err != nil {
			return nil, err
		}
		return &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() },
			Transport: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512, DisableCompression: true},
		}, nil
	}
	return nil, fmt.Errorf("%s is %q, which is no role", roleVar, role)
}

// memoryURL is the store that keeps its records in the memory of the process.
const memoryURL = "memory:"

func openStore(ctx context.Context, url string) (store.Store, error) {
	if url == memoryURL {
		return memstore.New(nil), nil
	}
	if !strings.HasPrefix(url, "postgres://") {
		return nil, errors.New(targetVar + ": only " + memoryURL + " and postgres:// are known")
	}
	return pgstore.Open(ctx, url, nil)
}

// pay is a handler that reads its request and answers.
func pay(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer) // a client that is gone is no matter
}
