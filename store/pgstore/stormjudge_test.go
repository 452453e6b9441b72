package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// check wants one answer for each key, and the effects that belong to it.
func (s *storm) check(t *testing.T, keys []string) {
	t.Helper()
	for _, key := range keys { // in the calm each comes to its end
		c := call(key)
		c.Wait = time.Minute
		for range 20 {
			res, err := s.a.Run(t.Context(), c, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
				tx, _ := TxFrom(ctx)
				run := fmt.Sprint("atomic ", s.runs.Add(1))
				_, err := tx.Exec(ctx, "INSERT INTO "+s.table+" VALUES ($1, $2, 'atomic')", key, run)
				return store.Outcome{Code: 200, Body: []byte(run)}, err
			})
			if s.recordAnswer(key, res, err); err == nil {
				break
			}
			if f, is := errors.AsType[*semel.Failure](err); is && f != nil {
				break
			}
			if !errors.Is(err, semel.ErrUnavailable) && !errors.Is(err, semel.ErrReleased) {
				t.Errorf("%s, in the calm: %v", key, err)
				break
			}
		}
	}
	for _, is := range s.wrong {
		t.Error(is)
	}
	effects := map[string][]string{} // of a key: each run, and how
	rows, _ := s.s.appPool.Query(t.Context(), "SELECT key, run FROM "+s.table+" ORDER BY key")
	var key, run string
	if _, err := pgx.ForEachRow(rows, []any{&key, &run}, func() error {
		effects[key] = append(effects[key], run)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ends := map[string]int{}
	for _, key := range keys {
		answers := s.answers[key]
		if len(answers) != 1 {
			t.Errorf("%s had the answers %v", key, answers)
			continue
		}
		var inTx, leased []string
		for _, run := range effects[key] {
			if strings.HasPrefix(run, "atomic") {
				inTx = append(inTx, run)
			} else {
				leased = append(leased, run)
			}
		}
		for answer := range answers {
			how, run, _ := strings.Cut(answer, " ")
			kind, _, _ := strings.Cut(run, " ")
			if ends[how+" "+kind]++; how == "done" && kind == "leased" && (len(inTx) > 0 || !slices.Contains(leased, run)) ||
				how == "done" && kind == "atomic" && (len(inTx) != 1 || inTx[0] != run) ||
				how == "done" && kind == "" && len(inTx) != 1 || how == "declined" && len(inTx) > 0 {
				t.Errorf("%s was answered %q, and its effects are %q and %q", key, answer, inTx, leased)
			}
		}
	}
	t.Logf("%d runs of %d keys, which ended so: %v", s.runs.Load(), len(keys), ends)
}
