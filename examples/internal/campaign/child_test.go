package campaign

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/sqlitestore"
)

// childVariable makes this test binary a member: its value is a memberSpec.
const childVariable = "SEMEL_CAMPAIGN_MEMBER"

// runner makes a function the Run of a testing.M.
type runner func() int

func (r runner) Run() int { return r() }

func TestMain(m *testing.M) {
	flag.Parse()
	if text := os.Getenv(childVariable); text != "" {
		slog.SetLogLoggerLevel(slog.LevelError)                               // handlers fail, and messages of killed members come again
		fmt.Fprintln(os.Stderr, "member:", serve(context.Background(), text)) // it is to be killed
		os.Exit(1)
	}
	os.Exit(pulsartest.Main(runner(func() int { return sqstest.Main(m) })))
}

// memberSpec says what a member consumes, and where its effects go.
type memberSpec struct {
	Broker      string // "sqs" or "pulsar"
	URL         string
	Name        string // of the queue or topic
	Type        int    // of Pulsar's subscription
	File        string // the database
	Unprotected bool   // without deduplication
}

// start starts a member. It is killed when t ends.
func (s *memberSpec) start(t *testing.T) *proctest.Process {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return proctest.Run(t, proctest.Self(t, childVariable+"="+string(text)))
}

func (s *memberSpec) source() (driver.Source, error) {
	if s.Broker == "sqs" {
		return s.sqsSource()
	}
	return s.pulsarSource()
}

// failing is the share of handlers that fail after they have written their effect. The
// rollback must remove it.
const failing = 0.02

var errHandler = errors.New("the handler fails after its write")

// serve handles messages. It returns only if it cannot go on.
func serve(ctx context.Context, text string) error {
	var s memberSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	st, err := sqlitestore.Open(ctx, s.File, storeOptions)
	if err != nil {
		return err
	}
	once, err := sqlitestore.NewAtomic(st, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	key := consume.FromHeader(consume.KeyHeader)
	if s.Unprotected {
		key = consume.Unprotected()
	}
	c, err := consume.New(once, consume.Keyed("campaign", key), write, &consume.Options{
		AllowShortRetention: true, MaxAttempts: -1, Concurrency: 64, Backoff: func(int) time.Duration { return 5 * time.Millisecond },
	})
	if err != nil {
		return err
	}
	source, err := s.source()
	if err != nil {
		return err
	}
	return c.Serve(ctx, source)
}

// storeOptions do not wait for the disk, because no test cuts the power.
var storeOptions = &sqlitestore.Options{Relaxed: true, BusyTimeout: 30 * time.Second}

// write is the handler: one row for each run, in the transaction of the record.
func write(ctx context.Context, _ *semel.Execution, m *consume.Message) error {
	n, err := strconv.Atoi(string(m.Body))
	if err != nil {
		return semel.Final(err)
	}
	tx, ok := sqlitestore.TxFrom(ctx)
	if !ok {
		return errors.New("the handler has no transaction")
	}
	if err := insert(ctx, tx, n); err != nil {
		return err
	}
	if rand.Float64() < failing {
		return errHandler
	}
	return nil
}

func insert(ctx context.Context, tx *sql.Tx, n int) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects (message, pid) VALUES (?, ?)", n, os.Getpid())
	return err
}
