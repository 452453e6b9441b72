package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// The groups of the section doors. The client, the server in between and the service
// are processes of their own.
const (
	doorHandler = "HTTP handler"
	doorProxy   = "HTTP proxy"
)

var doorGroups = []group{{doorHandler, handlerContenders}, {doorProxy, proxyContenders}}

func measureDoors(ctx context.Context, l *lab) ([]Figure, error) {
	figures, err := l.groups(ctx, doorGroups)
	if err != nil {
		return nil, err
	}
	memory, err := l.proxyMemory(ctx)
	return append(figures, memory), err
}

// request is the body of each request.
const request = `{"order":{"id":"4711","amount":1299,"currency":"EUR"},"customer":"c-8e03978e","note":"a body of the usual size for an API call"}`

// posts makes requests. The answer must be the handler's, and a replay if and only if
// the call is not new. A door that does not replay runs the handler again.
func posts(url string, replays bool) func(ctx context.Context, key string, isNew bool) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true}}
	return func(ctx context.Context, key string, isNew bool) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/payments", strings.NewReader(request))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		var body bytes.Buffer
		_, err = io.Copy(&body, res.Body)
		err = errors.Join(err, res.Body.Close())
		if err == nil && res.StatusCode != http.StatusCreated {
			return errors.New(res.Status + ": " + body.String())
		}
		return checked(err, body.String(), !replays && isNew || replays && res.Header.Get("Idempotent-Replayed") != "true", isNew)
	}
}

func handlerContenders(ctx context.Context, l *lab) ([]contender, error) {
	url, postgres, err := l.postgres(ctx)
	if err != nil {
		return nil, err
	}
	memory, err1 := l.role(roleMiddleware, memoryURL)
	stored, err2 := l.role(roleMiddleware, url)
	bare, err3 := l.role(roleHandler, "")
	if err := errors.Join(err1, err2, err3, ctx.Err()); err != nil {
		return nil, err
	}
	return []contender{
		{name: "bare handler", do: posts(bare.url, false), server: bare.busy},
		{name: ours + ", memory", do: posts(memory.url, true), server: memory.busy},
		{name: ours + ", PostgreSQL", do: posts(stored.url, true), server: sum(stored.busy, postgres)},
	}, nil
}

func proxyContenders(ctx context.Context, l *lab) ([]contender, error) {
	url, postgres, err := l.postgres(ctx)
	if err != nil {
		return nil, err
	}
	service, err := l.role(roleHandler, "")
	if err != nil {
		return nil, err
	}
	memory, err1 := l.semelProxy(ctx, service.url, memoryURL)
	stored, err2 := l.semelProxy(ctx, service.url, url)
	bare, err3 := l.role(roleBareProxy, service.url)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return []contender{
		{name: "bare proxy", do: posts(bare.url, false), server: sum(bare.busy, service.busy)},
		{name: ours + ", memory", do: posts(memory.url, true), server: sum(memory.busy, service.busy)},
		{name: ours + ", PostgreSQL", do: posts(stored.url, true), server: sum(stored.busy, service.busy, postgres)},
	}, nil
}

// semelProxy starts semel proxy.
func (l *lab) semelProxy(ctx context.Context, upstream, store string) (*program, error) {
	path, err := l.semelBinary(ctx)
	if err != nil {
		return nil, err
	}
	return l.start(exec.CommandContext(ctx, path, "proxy", "--listen", "127.0.0.1:0", "--upstream", upstream, "--scope", "single", "--store", store))
}

// memoryUnderLoad is the kind of the figure of proxyMemory.
const memoryUnderLoad = "memory under load"

// proxyMemory measures the memory and the connections of semel proxy, when it has
// started and after traffic.
func (l *lab) proxyMemory(ctx context.Context) (f Figure, err error) {
	url, _, err := l.postgres(ctx)
	if err != nil {
		return f, err
	}
	service, err := l.role(roleHandler, "")
	if err != nil {
		return f, err
	}
	p, err := l.semelProxy(ctx, service.url, url)
	if err != nil {
		return f, err
	}
	idle := memoryOf(p.Pid(), "VmRSS")
	callers := l.opt.callers[len(l.opt.callers)-1]
	began := time.Now()
	took, err := loop(ctx, callers, nil, posts(p.url, true), func() bool { return time.Since(began) >= 20*l.opt.each })
	if err != nil {
		return f, err
	}
	connections, err := postgresNumber(ctx, url, "SELECT count(*)::float8 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	return Figure{Group: doorProxy, Name: ours + ", PostgreSQL", Kind: memoryUnderLoad, N: callers, Values: map[string]Stat{
		"requests": once(float64(len(took))), "idle": once(idle), "most": once(memoryOf(p.Pid(), "VmHWM")), "connections": once(connections),
	}}, err
}
