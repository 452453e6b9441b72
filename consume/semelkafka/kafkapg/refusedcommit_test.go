package kafkapg

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
)

// A trigger of the application's refuses COMMIT for what one message wrote, by a
// code of its own: that is no outage, which would hold up all for ever.
func TestHandle_CommitRefusedByApplicationCode_BlamesOneMessage(t *testing.T) {
	for _, code := range []string{"MY001", "45000", "B0001"} {
		for _, form := range []string{"keys", "offsets"} {
			p := newShop(t)
			refuse := strings.Replace(p.effectTable, "effect", "refuse", 1)
			p.exec(t, "CREATE FUNCTION "+refuse+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not balanced' USING ERRCODE = '"+code+"'; END $$")
			p.exec(t, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "+p.effectTable+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.body = 'bad') EXECUTE FUNCTION "+refuse+"()")
			var l semelkafka.Ledger = p.keyed(t, 2)
			behind := driver.ReasonDone
			if form == "offsets" {
				l = newOffsetsLedger(p.store, p.write, 2)
				behind = driver.ReasonInProgress
			}
			batch := named("a", "b", "bad", "c")
			const done, again = driver.ReasonDone, driver.ReasonDuplicate
			wantReasons(t, l.Handle(t.Context(), batch), done, done, driver.ReasonError, behind)
			if behind == done {
				behind = again
			}
			wantReasons(t, l.Handle(t.Context(), batch), again, again, map[string]driver.Reason{"keys": driver.ReasonError, "offsets": driver.ReasonExhausted}[form], behind)
			if form == "keys" { // the record of the last attempt is kept only by the next
				wantReasons(t, l.Handle(t.Context(), batch), again, again, driver.ReasonExhausted, again)
			}
		}
	}
}
