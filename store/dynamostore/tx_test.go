package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// A handler can neither commit its transaction nor add to it after it has returned,
// and a call inside of the handler joins the transaction.
func TestAtomic_HandlersTransaction_EndsWithHandler(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a := atomicOf(t, s)
	var left *Tx
	own := s.NewTx()
	_, err := a.In(own).Run(t.Context(), testCall("own"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		left, _ = TxFrom(ctx)
		return store.Outcome{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Add(s.count("late")); err == nil {
		t.Error("a write after the handler has returned, before the commit, is no error")
	}
	if err := errors.Join(own.Add(s.count("own")), own.Commit(t.Context())); err != nil {
		t.Errorf("the caller's own write and commit: %v", err)
	}
	err = Once(t.Context(), a, testCall("k"), func(ctx context.Context, _ *semel.Execution, tx *Tx) error {
		left = tx
		if err := tx.Commit(ctx); err == nil {
			t.Error("the handler has committed its transaction")
		}
		inner := Once(ctx, a, testCall("inner"), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(s.count("inner")) })
		return errors.Join(inner, tx.Add(s.count("k")))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Add(s.count("late")); err == nil {
		t.Error("a write after the commit is no error")
	}
	for name, want := range map[string]int64{"own": 1, "k": 1, "inner": 1, "late": 0} {
		if n := s.counted(t, name); n != want {
			t.Errorf("the effect %s happened %d times, want %d", name, n, want)
		}
	}
}

func TestTx_TooManyWrites_Refused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	tx := s.NewTx()
	for i := range maxWrites - 1 {
		if err := tx.Add(s.count(fmt.Sprint(i))); err != nil {
			t.Fatalf("write %d: %v", i+1, err)
		}
	}
	if err := tx.Add(s.count("more")); err == nil || !strings.Contains(err.Error(), "100") {
		t.Errorf("write 100 beside a record: %v, want an error that names the limit", err)
	}
	if _, err := tx.Claim(t.Context(), proposal("k")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("a transaction with 99 writes and a record: %v", err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("a second Commit is no error")
	}
	if err := tx.Add(s.count("late")); err == nil {
		t.Error("Add after Commit is no error")
	}
}

// inProgress is a client whose first transactions are answered with
// TransactionInProgressException, carried out or not.
func inProgress(t testing.TB, transactions int, carriedOut bool) *dynamodb.Client {
	var left atomic.Int64
	left.Store(int64(transactions))
	return dynamotest.Client(dynamotest.URL(t), func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 1
		o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Amz-Target") != "DynamoDB_20120810.TransactWriteItems" || left.Add(-1) < 0 {
				return http.DefaultClient.Do(req)
			}
			if carriedOut {
				reply, err := http.DefaultClient.Do(req)
				if err != nil {
					return nil, err
				}
				_ = reply.Body.Close()
			}
			return refusal(req, "TransactionInProgressException"), nil
		})
	})
}

// refusal is a server's answer with an error code.
func refusal(req *http.Request, code string) *http.Response {
	body := errorBody(code, "")
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: req,
		Body: readCloser{strings.NewReader(body)}, ContentLength: int64(len(body)),
	}
}

// ErrConflict says that nothing was written, so a transaction in doubt is none.
func TestCommit_InProgress_IsInDoubtAndNoConflict(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	for _, carriedOut := range []bool{true, false} {
		s := openOn(t, inProgress(t, 1, carriedOut), direct.table, &direct.opt)
		tx := s.NewTx()
		if err := tx.Add(s.count("k")); err != nil {
			t.Fatal(err)
		}
		err := tx.Commit(t.Context())
		if !errors.Is(err, semel.ErrInDoubt) || errors.Is(err, ErrConflict) || store.Affects(err) != store.ExtentCall {
			t.Errorf("carried out %v: error %v, concerns %v; want ErrInDoubt of a call, and no conflict", carriedOut, err, store.Affects(err))
		}
	}
	if n := direct.counted(t, "k"); n != 1 {
		t.Errorf("the effect happened %d times, want 1", n)
	}
}

// A refusal of the client's second sending says nothing about the first.
func TestCommit_SecondSendingRefused_IsNoRefusalOfFirst(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	for name, lookRefused := range map[string]bool{"found": false, "not readable": true} {
		var sent atomic.Int64
		client := dynamotest.Client(dynamotest.URL(t), func(o *dynamodb.Options) {
			o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
				transaction := req.Header.Get("X-Amz-Target") == "DynamoDB_20120810.TransactWriteItems"
				if transaction && sent.Add(1) == 1 {
					if reply, err := http.DefaultClient.Do(req); err == nil {
						_ = reply.Body.Close()
					}
					return nil, errNetwork
				}
				if transaction || lookRefused && sent.Load() > 0 {
					return refusal(req, "ExpiredTokenException"), nil
				}
				return http.DefaultClient.Do(req)
			})
		})
		a := atomicOf(t, openOn(t, client, direct.table, &direct.opt))
		err := Once(t.Context(), a, testCall(name), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(direct.count(name)) })
		if n := direct.counted(t, name); n != 1 || sent.Load() != 2 {
			t.Fatalf("%s: %d effects after %d sendings, want 1 after 2", name, n, sent.Load())
		}
		if inDoubt := errors.Is(err, semel.ErrInDoubt); inDoubt != lookRefused || !inDoubt && err != nil {
			t.Errorf("%s: it is written, and the error is %v", name, err)
		}
	}
}

func TestAtomic_TransactionInProgress_TriesAgain(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	for name, carriedOut := range map[string]bool{"carried out": true, "not carried out": false} {
		a := atomicOf(t, openOn(t, inProgress(t, 2, carriedOut), direct.table, &direct.opt))
		err := Once(t.Context(), a, testCall(name), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(direct.count(name)) })
		if n := direct.counted(t, name); err != nil || n != 1 {
			t.Errorf("%s: %d effects, error %v; want one", name, n, err)
		}
	}
}
