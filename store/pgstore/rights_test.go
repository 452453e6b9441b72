package pgstore

import (
	"net/url"
	"strings"
	"testing"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A service often has another role than the migrations. The check of its rights is the one
// that operators can make before the service starts.
func TestCheck_RoleLacksRights_NamesThemWithTheGrant(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Durable...)
	admin := openAt(t, srv.URL(), &Options{Partitions: 2})
	for _, sql := range []string{
		`CREATE ROLE "The App" LOGIN`, `GRANT USAGE ON SCHEMA semel TO "The App"`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semel TO "The App"`,
		`REVOKE INSERT, DELETE ON semel.semel_meta FROM "The App"`, // which no statement needs
	} {
		mustExec(t, admin.ownPool, sql)
	}
	app := openAt(t, as(t, srv.URL(), "The App"), &Options{NoMigrate: true})
	if err := app.Check(t.Context()); err != nil {
		t.Fatalf("with all rights: %v", err)
	}
	const grant = `; as postgres: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semel TO "The App"`
	for revoke, want := range map[string]string{
		"DELETE, UPDATE ON semel.semel_record":           "The App has no UPDATE, DELETE on semel_record" + grant,
		"INSERT ON semel.semel_step":                     "The App has no INSERT on semel_step" + grant,
		"ALL ON semel.semel_outbox_sent":                 "The App has no SELECT, INSERT, UPDATE, DELETE on semel_outbox_sent" + grant,
		"UPDATE ON semel.semel_meta":                     "The App has no UPDATE on semel_meta" + grant,
		"SELECT ON semel.semel_record_p001":              "The App has no SELECT on the partitions of semel_record" + grant,
		"INSERT ON semel.semel_doubt, semel.semel_timer": "The App has no INSERT on semel_doubt, semel_timer" + grant,
	} {
		mustExec(t, admin.ownPool, "REVOKE "+revoke+` FROM "The App"`)
		if err := app.Check(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("without %s: %v, want %s", revoke, err, want)
		}
		mustExec(t, admin.ownPool, "GRANT "+revoke+` TO "The App"`)
	}
	mustExec(t, admin.ownPool, `REVOKE INSERT ON semel.semel_record FROM "The App"`)
	if _, err := app.Claim(t.Context(), proposal("k")); err == nil || !strings.Contains(err.Error(), "semel doctor") {
		t.Errorf("a claim: %v, want the next step", err)
	}
}

func TestOpen_RoleLacksRights_ErrorHasTheGrant(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Durable...)
	db := pool(t, srv.URL())
	mustExec(t, db, "CREATE ROLE mig LOGIN; CREATE ROLE app LOGIN")
	if _, err := Open(t.Context(), as(t, srv.URL(), "mig"), nil); err == nil || !strings.Contains(err.Error(), "as postgres: GRANT CREATE ON DATABASE postgres TO mig") {
		t.Errorf("a role that may not create the schema: %v", err)
	}
	mustExec(t, db, "GRANT CREATE ON DATABASE postgres TO mig")
	openAt(t, as(t, srv.URL(), "mig"), nil)
	for _, noMigrate := range []bool{false, true} {
		_, err := Open(t.Context(), as(t, srv.URL(), "app"), &Options{NoMigrate: noMigrate})
		if err == nil || !strings.Contains(err.Error(), "app has no USAGE on the schema semel; no SELECT, INSERT, UPDATE, DELETE on semel_crash_marker") ||
			!strings.HasSuffix(err.Error(), "as mig: GRANT USAGE ON SCHEMA semel TO app; as mig: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semel TO app") {
			t.Errorf("NoMigrate %v: %v", noMigrate, err)
		}
	}
	mustExec(t, db, "CREATE SCHEMA other AUTHORIZATION mig")
	if _, err := Open(t.Context(), as(t, srv.URL(), "app"), &Options{Schema: "other"}); err == nil || !strings.Contains(err.Error(), "app has no USAGE on the schema other") {
		t.Errorf("a schema of another role: %v", err)
	}
	mustExec(t, db, "GRANT USAGE ON SCHEMA other TO app")
	if _, err := Open(t.Context(), as(t, srv.URL(), "app"), &Options{Schema: "other"}); err == nil || !strings.Contains(err.Error(), "migrate as mig, which owns the schema other") {
		t.Errorf("a schema in which the role may not create tables: %v", err)
	}
}

// as is a URL with another role.
func as(t *testing.T, at, role string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}
