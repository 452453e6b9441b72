//go:build unix

package lambda

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store/sqlitestore"
)

// The variables by which this program, started again, becomes a function.
const (
	functionVar = "SEMEL_LAMBDA_FUNCTION" // "pay" or "batch"
	folderVar   = "SEMEL_LAMBDA_FOLDER"
	leaseVar    = "SEMEL_LAMBDA_LEASE"
)

func TestMain(m *testing.M) {
	if os.Getenv(functionVar) == "cold" {
		if err := coldStart(); err != nil {
			slog.Error("the function cannot start", "error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if name := os.Getenv(functionVar); name != "" {
		handler, err := function(name, os.Getenv(folderVar), os.Getenv(leaseVar))
		if err != nil {
			slog.Error("the function cannot start", "error", err)
			os.Exit(1)
		}
		lambda.Start(handler)
	}
	os.Exit(m.Run())
}

// payment is the event of the function "pay". The fields after Cents say how the
// process behaves, and are not compared.
type payment struct {
	ID     string `json:"id"`
	Cents  int    `json:"cents"`
	Mode   string `json:"mode"`
	Millis int    `json:"millis"`
	Die    int    `json:"die"` // the process kills itself after so many milliseconds; 0: it does not
}

// dieAttribute is the attribute of a batch's first message that does the same.
const dieAttribute = "die"

// dieAfter kills the process some milliseconds later, wherever it then is.
func dieAfter(millis int) {
	if millis > 0 {
		time.AfterFunc(time.Duration(millis)*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
}

func function(name, folder, lease string) (any, error) {
	d, err := time.ParseDuration(lease)
	if err != nil {
		return nil, err
	}
	st, err := sqlitestore.Open(context.Background(), filepath.Join(folder, "semel.db"), nil)
	if err != nil {
		return nil, err
	}
	if name == "batch" {
		return batchFunction(st)
	}
	guard, err := semel.New(st, &semel.Options{Lease: d})
	if err != nil {
		return nil, err
	}
	o := semellambda.Options[payment]{
		Operation: "pay", Tenant: semellambda.Shared[payment], KeyPointers: []string{"/id"}, PayloadPointers: []string{"/cents"}, Wait: 2 * time.Second,
	}
	pay, err := semellambda.Wrap(guard, o, func(ctx context.Context, p payment) (string, error) {
		x, _ := semel.FromContext(ctx)
		result := fmt.Sprintf("%s %d %d %d", p.ID, x.Attempt(), os.Getpid(), rand.Uint64())
		if err := note(folder, result); err != nil {
			return "", semel.NoEffect(err)
		}
		pause := time.Duration(p.Millis) * time.Millisecond
		if p.Mode == "deaf" { // as a call that knows no context
			<-time.After(pause)
			return result, nil
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(pause):
			return result, nil
		}
	})
	return func(ctx context.Context, event json.RawMessage) (string, error) {
		var p payment
		if err := json.Unmarshal(event, &p); err != nil {
			return "", err
		}
		dieAfter(p.Die)
		return pay(ctx, event)
	}, err
}

// batchFunction books each message of a FIFO queue in one transaction with its record.
func batchFunction(st *sqlitestore.Store) (any, error) {
	atomic, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		return nil, err
	}
	o := semellambda.Options[events.SQSMessage]{
		Operation: "book", Tenant: semellambda.Shared[events.SQSMessage], KeyPointers: []string{"/id"}, PayloadPointers: []string{"/id"},
		Report: func(context.Context, string, error) {},
	}
	batch, err := semellambda.SQS(atomic, o, func(ctx context.Context, m events.SQSMessage) error {
		var p payment
		if err := json.Unmarshal([]byte(m.Body), &p); err != nil {
			return semel.Final(err)
		}
		tx, ok := sqlitestore.TxFrom(ctx)
		if !ok {
			return semel.Final(fmt.Errorf("no transaction"))
		}
		if err := book(ctx, tx, m.Attributes["MessageGroupId"], p.ID); err != nil {
			return err
		}
		<-time.After(time.Duration(p.Millis) * time.Millisecond)
		if p.Mode == "fail" && rand.IntN(2) == 0 {
			return fmt.Errorf("a fault that passes")
		}
		return nil
	})
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		if die, err := strconv.Atoi(e.Records[0].Attributes[dieAttribute]); err == nil {
			dieAfter(die)
		}
		return batch(ctx, e)
	}, err
}

const schema = "CREATE TABLE IF NOT EXISTS booking (number INTEGER PRIMARY KEY AUTOINCREMENT, lane TEXT, id TEXT)"

func book(ctx context.Context, tx *sql.Tx, lane, id string) error {
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO booking (lane, id) VALUES (?, ?)", lane, id)
	return err
}

// note writes a line into the ledger of runs, which knows nothing of Semel.
func note(folder, line string) error {
	f, err := os.OpenFile(filepath.Join(folder, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return err
	}
	return f.Close()
}

// runs are the lines of the ledger.
func runs(t *testing.T, folder string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "runs"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}
