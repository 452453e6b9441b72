package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// workerEnv is set in a process that is a worker: its URL, and its first key.
const workerEnv = "SEMEL_UPGRADE_WORKER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerEnv); spec != "" {
		url, first, _ := strings.Cut(spec, " ")
		if err := work(url, first); err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
			os.Exit(1)
		}
		return
	}
	os.Exit(pgtest.Main(m))
}

// work makes a leased call and an Atomic call of one key after the other, and prints each
// answer, until its input ends.
func work(url, first string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	st, err := pgstore.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	g, err := semel.New(st, nil)
	if err != nil {
		return err
	}
	a, err := pgstore.NewAtomic(st, nil)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	for ; ctx.Err() == nil; n++ {
		value := fmt.Sprintf("%d-%d", os.Getpid(), n)
		call := semel.Call{Operation: "leased", Tenant: "t", Key: strconv.Itoa(n), Payload: semel.NoPayload(), Wait: time.Minute}
		got, err := semel.Do(ctx, g, call, func(ctx context.Context, x *semel.Execution) (string, error) {
			return semel.Do(ctx, g, x.Step("step"), func(context.Context, *semel.Execution) (string, error) { return value, nil })
		})
		if err := say(ctx, "leased", n, got, err); err != nil {
			return err
		}
		call.Operation = "atomic"
		got, err = pgstore.Do(ctx, a, call, func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) (string, error) {
			_, err := tx.Exec(ctx, "INSERT INTO effect VALUES ($1, $2)", n, value)
			return value, err
		})
		if err := say(ctx, "atomic", n, got, err); err != nil {
			return err
		}
	}
	return nil
}

func say(ctx context.Context, form string, n int, got string, err error) error {
	if ctx.Err() != nil || errors.Is(err, semel.ErrInProgress) || errors.Is(err, semel.ErrReleased) {
		return nil //nolint:nilerr // the process ends, or another one runs the call, or ended while it did
	}
	if err == nil {
		fmt.Println("told", form, n, got)
	}
	return err
}
