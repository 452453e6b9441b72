package kafkapg

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/consume/driver"
)

// The server itself refuses one message, with a code that says something about the
// server when it meets each message: a limit, a right, a read-only transaction. It
// does so in a statement of the handler, or at COMMIT. Because the database
// answers, the message is the cause: an outage would delay all messages forever.
func TestHandle_ServerRefusesOneMessage_BlamesIt(t *testing.T) {
	const done, duplicate, again, waits, failed = driver.ReasonDone, driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	for code, fault := range map[string]struct{ settings, body string }{
		"53400, a limit on temporary files": {"SET work_mem = '64kB' SET temp_file_limit = '0'", "PERFORM count(*) FROM (SELECT i FROM generate_series(1, 20000) i ORDER BY md5(i::text)) s"},
		"42501, a missing right":            {"SET role = pg_monitor", "EXECUTE 'CREATE TABLE pg_catalog.none (n int)'"},
		"42P01, a missing table":            {"", "EXECUTE 'INSERT INTO none VALUES (1)'"},
		"25006, a read-only transaction":    {"SET transaction_read_only = on", "EXECUTE 'CREATE TABLE none (n int)'"},
		"57014, a cancelled statement":      {"", "PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(2)"},
		"55P03, a lock that is not free":    {"SET lock_timeout = '10ms'", "EXECUTE 'LOCK TABLE locked'"},
	} {
		for when, deferred := range map[string]string{"in the handler": "", "at COMMIT": "DEFERRABLE INITIALLY DEFERRED"} {
			t.Run(code+", "+when, func(t *testing.T) {
				t.Parallel()
				eachLedger(t, func(t *testing.T, p *shop, form string) {
					schema, _, _ := strings.Cut(p.effectTable, ".")
					fn := schema + ".fault"
					p.exec(t, "CREATE TABLE "+schema+".locked (n int)")
					body := fault.body
					if code[:5] == "55P03" {
						body = "EXECUTE 'LOCK TABLE " + schema + ".locked'"
						tx, err := p.pool.Begin(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						defer func() { _ = tx.Rollback(t.Context()) }()
						if _, err := tx.Exec(t.Context(), "LOCK TABLE "+schema+".locked"); err != nil {
							t.Fatal(err)
						}
					}
					p.exec(t, "CREATE FUNCTION "+fn+"() RETURNS trigger LANGUAGE plpgsql "+fault.settings+" AS $$ BEGIN "+body+"; RETURN NULL; END $$")
					p.exec(t, "CREATE CONSTRAINT TRIGGER fault AFTER INSERT ON "+p.effectTable+" "+deferred+" FOR EACH ROW WHEN (NEW.body = 'bad') EXECUTE FUNCTION "+fn+"()")
					m := p.member(t, form, 2)
					batch := named("a", "b", "bad", "c")
					if form == "offsets" {
						wantReasons(t, m.Handle(t.Context(), batch), done, done, again, waits)
						wantReasons(t, m.Handle(t.Context(), batch), duplicate, duplicate, failed, waits)
						return
					}
					wantReasons(t, m.Handle(t.Context(), batch), done, done, again, done)
					for range 2 { // if the last attempt did not commit either, the next batch records it
						if r := m.Handle(t.Context(), batch); driver.Decide(r[2], driver.Policy{}).Reason == failed {
							return
						}
					}
					t.Error("the message is not dead-lettered after its attempts")
				})
			})
		}
	}
}
