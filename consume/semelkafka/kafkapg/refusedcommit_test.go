package kafkapg

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// A trigger of the application refuses COMMIT because of one message, with an
// error code of the application. That is not an outage: an outage would delay all
// messages forever.
func TestHandle_CommitRefusedByApplicationCode_BlamesOneMessage(t *testing.T) {
	const done, duplicate, again, waits, failed = driver.ReasonDone, driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	for _, code := range []string{"MY001", "45000", "B0001", "P0001", "23503", "22003", "42501", "42P01", "53100", "53200", "53300", "53400", "54000", "55P03", "55006", "57014", "57P01", "57P03", "58030", "08006", "25006", "25P03", "0A000", "40001", "40P01", "XX000", "XX001", "F0000"} {
		eachLedger(t, func(t *testing.T, p *shop, form string) {
			refuse := strings.Replace(p.effectTable, "effect", "refuse", 1)
			p.exec(t, "CREATE FUNCTION "+refuse+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not balanced' USING ERRCODE = '"+code+"'; END $$")
			p.exec(t, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "+p.effectTable+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.body = 'bad') EXECUTE FUNCTION "+refuse+"()")
			m := p.member(t, form, 2)
			batch := named("a", "b", "bad", "c")
			if form == "offsets" {
				wantReasons(t, m.Handle(t.Context(), batch), done, done, again, waits)
				wantReasons(t, m.Handle(t.Context(), batch), duplicate, duplicate, failed, waits)
				return
			}
			wantReasons(t, m.Handle(t.Context(), batch), done, done, again, done)
			wantReasons(t, m.Handle(t.Context(), batch), duplicate, duplicate, again, duplicate)
			// The last attempt did not commit either, so the third batch records it.
			wantReasons(t, m.Handle(t.Context(), batch), duplicate, duplicate, failed, duplicate)
		})
	}
}

// A handler sends COMMIT for one message, and hides that this was refused. That is a fault
// of the handler, and not an outage: the message ends as a dead letter.
func TestHandle_HandlerHidesRefusedCommit_BlamesOneMessage(t *testing.T) {
	t.Parallel()
	const done, duplicate, again, waits, failed = driver.ReasonDone, driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.member(t, form, 2)
		*m.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
			if slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == "bad" }) {
				_, _ = tx.Exec(ctx, "COMMIT")
			}
			return p.write(ctx, tx, ms)
		}
		batch := named("a", "b", "bad", "c")
		if form == "offsets" {
			wantReasons(t, m.Handle(t.Context(), batch), done, done, again, waits)
			wantReasons(t, m.Handle(t.Context(), batch), duplicate, duplicate, failed, waits)
			return
		}
		wantReasons(t, m.Handle(t.Context(), batch), done, done, again, done)
		wantReasons(t, m.Handle(t.Context(), batch), duplicate, duplicate, again, duplicate)
		wantReasons(t, m.Handle(t.Context(), batch), duplicate, duplicate, failed, duplicate)
	})
}
