package pgstore

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// While a step is inserted, the server ends the transaction of a process that freezes.
func TestReceive_RecordWithSteps_LimitsIdleTime(t *testing.T) {
	t.Parallel()
	r := complete(t, openNew(t, nil), "k", "body")
	s := openNew(t, &Options{MaxIdleTx: 7 * time.Second})
	schema := s.quoted()
	mustExec(t, s.ownPool, "CREATE TABLE "+schema+".seen (idle text)")
	mustExec(t, s.ownPool, "CREATE FUNCTION "+schema+`.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO `+schema+`.seen VALUES (current_setting('idle_in_transaction_session_timeout')); RETURN NEW; END $$`)
	mustExec(t, s.ownPool, "CREATE TRIGGER note BEFORE INSERT ON "+schema+".semel_step FOR EACH ROW EXECUTE FUNCTION "+schema+".note()")
	if f, err := s.Receive(t.Context(), r, []store.Step{{Name: "step", Recorded: r.Updated}}); err != nil || !f.Won {
		t.Fatalf("Receive: %+v, %v", f, err)
	}
	if idle := ask[string](t, s.ownPool, "SELECT idle FROM "+schema+".seen"); idle != "7s" {
		t.Errorf("the transaction may be idle for %q, want 7s, which is Options.MaxIdleTx", idle)
	}
}

// A process that freezes while it migrates holds the tables for a minute at most.
func TestMigrate_Scripts_LimitIdleTime(t *testing.T) {
	url := database(t, "semel_idle_migration")
	db := pool(t, url)
	mustExec(t, db, "CREATE TABLE seen (idle text)")
	mustExec(t, db, `CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO public.seen VALUES (current_setting('idle_in_transaction_session_timeout')); END $$`)
	mustExec(t, db, "CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION note()")
	openAt(t, url, &Options{Schema: newSchema(t, url)})
	if idle := ask[string](t, db, "SELECT string_agg(DISTINCT idle, ', ') FROM seen"); idle != "1min" {
		t.Errorf("the scripts run with the idle limits %q, want 1min", idle)
	}
}
