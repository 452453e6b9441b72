package handlertx

import "testing"

func TestEnds_StatementsThatEndTheTransaction_Found(t *testing.T) {
	for _, sql := range []string{
		"COMMIT", "commit;", " \n\tCommit Work", "END", "end transaction", "ABORT", "ROLLBACK", "rollback work", "ROLLBACK TRANSACTION AND CHAIN",
		"COMMIT AND CHAIN", "PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'", "ROLLBACK PREPARED 'x'",
		"-- a comment\nCOMMIT", "/* a /* nested */ comment */ COMMIT", "SELECT 1; COMMIT", ";;COMMIT", "SELECT 1;/**/ROLLBACK; BEGIN",
		"SELECT 'a;b'; COMMIT", "SELECT 'it''s; '; COMMIT", `SELECT "a;""b"; COMMIT`, "SELECT $$;$$; COMMIT", "SELECT $a$ $$ ; $b$ $a$; COMMIT",
		`SELECT E'\'; '; COMMIT`, `SELECT '\'; COMMIT; --'`, "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; COMMIT", "SELECT 1 -- ;\n; COMMIT", "SELECT a$b; COMMIT", "SELECT $1; COMMIT; SELECT $2",
		"SAVEPOINT semel_handler", "RELEASE SAVEPOINT Semel_Swap", `ROLLBACK TO "semel_handler"`, "ROLLBACK WORK TO SAVEPOINT semel_swap",
	} {
		if !Ends(sql) {
			t.Errorf("%q is not refused", sql)
		}
	}
}

func TestEnds_OtherStatements_NotRefused(t *testing.T) {
	for _, sql := range []string{
		"", ";", "SELECT 1", "INSERT INTO t VALUES ('COMMIT; COMMIT')", "SELECT CASE WHEN true THEN 1 END", "SELECT 'a'; SELECT 'COMMIT'",
		"SAVEPOINT a", "ROLLBACK TO a", "ROLLBACK TRANSACTION TO SAVEPOINT a", "RELEASE a; SELECT 1", "PREPARE p AS SELECT 1", "SELECT $$; COMMIT; $$",
		"SELECT $t$; COMMIT; $t$", "/* ; COMMIT; */ SELECT 1", "SELECT 1 -- ; COMMIT", "DO $$BEGIN PERFORM 1; END$$", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END",
		"commits", "SELECT 1; committed", `SELECT E'\'; COMMIT; '`,
	} {
		if Ends(sql) {
			t.Errorf("%q is refused", sql)
		}
	}
}

func FuzzEnds_AnyText_Ends(f *testing.F) {
	f.Add("SELECT $a$; '\\' -- /* \n */ \"")
	f.Fuzz(func(_ *testing.T, sql string) { Ends(sql) })
}

func TestSpoils_StatementsThatOutliveTheTransaction_Found(t *testing.T) {
	for _, sql := range []string{
		"SET search_path = a", "set session x.y to 'z'", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET ROLE eve", "SET SESSION AUTHORIZATION eve", "SET TIME ZONE 'UTC'",
		"RESET ALL", "reset role", "SELECT 1; SET x.y = 'z'", "UPDATE t SET a = 1; RESET x.y", "DEALLOCATE ALL", "DISCARD PLANS; SELECT 1",
		"SELECT set_config('x.y', $1, false)", "SELECT pg_catalog.set_config('x.y', $1, $2)", "SELECT SET_CONFIG('x.y', 'true', false)",
		"SELECT set_config('x.y', 'a', true), set_config('x.z', 'b', false)", "SELECT set_config('x.y', f('a', true), false)",
		"SELECT set_config('x.y', g(f('a'), true), false)", "SELECT set_config('x.y', ', true)', false)", "SELECT set_config('x.y', E'\\', true)', false)", "SELECT set_config('x.y', $$, true)$$, false)", "SELECT set_config('x.y', /* , true) */ 'a', false)",
	} {
		if !spoils(sql) {
			t.Errorf("%q is not found", sql)
		}
	}
}

func TestSpoils_StatementsOfTheTransaction_NotFound(t *testing.T) {
	for _, sql := range []string{
		"", "SELECT 1", "UPDATE t SET a = 1", "UPDATE t SET a = 1;", "SET LOCAL x.y = 'z'", "set local role eve", "SET TRANSACTION READ ONLY", "SET CONSTRAINTS ALL DEFERRED", "SELECT 1; SET LOCAL x.y = 'z'; SELECT 2",
		"SELECT set_config('x.y', $1, true)", "SELECT set_config('x.y', f(')'), TRUE )", "SELECT pg_catalog.set_config('x.y', 'a, b)', is_local => true)",
		"SELECT set_config('x.y', coalesce($1::text, current_setting('x.y')), true)", "SELECT set_config('x.y', f(g(array['a', 'b']), h()), true), set_config('x.z', $a$)$a$, true)", "SELECT 'SET x = 1; RESET ALL'",
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END", "INSERT INTO t SELECT 1 ON CONFLICT DO UPDATE SET a = 1; SELECT 1",
	} {
		if spoils(sql) {
			t.Errorf("%q is found", sql)
		}
	}
}
