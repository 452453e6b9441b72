package kafkatest

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
)

// fates are what becomes of the handler of a message, and how many of a hundred
// have it. All but the first two come once or twice, and then the message is as
// the rest, which are good.
var fates = []struct {
	name string
	of   int
}{
	{"is final", 2}, {"is hopeless", 1}, {"fails", 4}, {"panics", 2}, {"has no effect", 2}, {"fails in company", 2}, {"has a call that fails", 2}, {"is slow", 3},
	{"is refused a statement", 3}, {"hides a refusal", 3}, {"is refused a copy", 2}, {"is refused at COMMIT", 3}, {"meets others", 2}, {"goes back to a savepoint", 3},
	{"breaks its connection", 1}, {"breaks it at COMMIT", 1}, {"hides that it broke", 1}, {"has a statement too late", 2}, {"has a context that is over", 2},
}

func (s *storm) fate(key string) string {
	n := int(s.hash(key, "fate") % uint64(100*s.size)) //nolint:gosec // it fits
	for _, f := range fates {
		if n -= f.of; n < 0 {
			return f.name
		}
	}
	return "is good"
}

// isDead: a message has no effect, ever.
func isDead(fate string) bool { return fate == "is final" || fate == "is hopeless" }

// meets reports whether a key meets its fate once more. In company it counts for
// some only.
func (s *storm) meets(key string, alone bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried[key] > int(s.hash(key, "times")%2) {
		return false
	}
	if alone || s.hash(key, "company")%4 == 0 {
		s.tried[key]++
	}
	return true
}

// handler writes a row for each message, before or after they meet their fates.
func (s *storm) handler(b *bank) func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
	return func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		first := s.hash(string(ms[0].Body), "order")%2 == uint64(len(ms)%2)
		if first {
			if err := b.write(ctx, tx, ms); err != nil {
				return err
			}
		}
		for _, m := range ms {
			if err := s.work(ctx, tx, string(m.Body), len(ms) == 1); err != nil {
				return err
			}
		}
		if first || tx.Conn().IsClosed() || tx.Conn().PgConn().TxStatus() != 'T' { // it hides that
			return nil
		}
		return b.write(ctx, tx, ms)
	}
}

var errNotNow = errors.New("not now")

// work is what the fate of one message does.
func (s *storm) work(ctx context.Context, tx pgx.Tx, key string, alone bool) error {
	exec := func(sql string) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}
	fate := s.fate(key)
	switch fate {
	case "is good":
		return nil
	case "is final":
		return semel.Final(errors.New("no"))
	case "is hopeless":
		return errors.New("never")
	case "is slow":
		select {
		case <-time.After(time.Duration(s.hash(key, "slow")%10) * time.Millisecond): //nolint:gosec // it is small
		case <-ctx.Done():
		}
		return nil
	case "fails in company":
		if !alone {
			return errNotNow
		}
		return nil
	case "goes back to a savepoint":
		return goBack(ctx, tx)
	case "has a context that is over":
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = tx.Exec(over, "SELECT 1")
		return nil
	}
	if !s.meets(key, alone) {
		return nil
	}
	switch fate {
	case "fails":
		return errNotNow
	case "panics":
		panic(errNotNow)
	case "has no effect":
		return semel.NoEffect(errNotNow)
	case "has a call that fails":
		return &semel.Error{Reason: semel.ErrUnavailable, Operation: "another"}
	case "is refused a statement":
		return exec("SELECT 1 / 0")
	case "hides a refusal":
		_ = exec("SELECT 1 / 0")
		return nil
	case "is refused a copy":
		_, err := tx.CopyFrom(ctx, pgx.Identifier{s.bank.schema, "child"}, []string{"id"}, pgx.CopyFromRows([][]any{{nil}}))
		return err
	case "is refused at COMMIT":
		return exec("INSERT INTO " + s.bank.in("child") + " (parent) VALUES (-1)")
	case "meets others":
		return exec("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
	case "breaks its connection":
		return exec("SELECT pg_terminate_backend(pg_backend_pid())")
	case "breaks it at COMMIT":
		return exec("INSERT INTO " + s.bank.in("trap") + " VALUES (1)")
	case "hides that it broke":
		_ = exec("SELECT pg_terminate_backend(pg_backend_pid())")
		return nil
	case "has a statement too late":
		short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
		_, err := tx.Exec(short, "SELECT pg_sleep(0.05)")
		return err
	}
	panic("no such fate: " + fate)
}

func goBack(ctx context.Context, tx pgx.Tx) error {
	sub, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := sub.Exec(ctx, "SELECT 1 / 0"); err == nil {
		return errors.New("it was not refused")
	}
	return sub.Rollback(ctx)
}
