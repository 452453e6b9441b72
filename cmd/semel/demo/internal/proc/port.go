package proc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// Address finds a free address on loopback. Its port is below those that
// systems hand out to clients, so that none takes it while its server is dead.
func Address() (string, error) {
	const from, to = 20_000, 32_000
	var last error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", from+rand.IntN(to-from))
		l, err := net.Listen("tcp", address) //nolint:noctx // it does not block
		if err == nil {
			return address, l.Close()
		}
		last = err
	}
	return "", fmt.Errorf("no free port from %d to %d: %w", from, to, last)
}

// Ready waits until url answers with a 2xx.
func (p *Process) Ready(ctx context.Context, url string) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return p.Until(ctx, func(ctx context.Context) error { return ask(ctx, client, url) })
}

// Until waits until f gives no error, which it is asked for again and again.
func (p *Process) Until(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: is not ready: %w", p.name, errors.Join(context.Cause(ctx), err))
		case <-p.over:
			return errors.Join(fmt.Errorf("%s: has ended; its log ends: %s", p.name, tail(p.log())), p.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // there is nothing in it
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return errors.New(res.Status)
	}
	return nil
}
