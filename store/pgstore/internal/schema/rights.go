package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// missingRights has a row for the schema and one for each set of rights on tables that the
// role does not have: what is missing, and the commands that grant it. Nothing inserts into
// semel_meta or deletes from it. A sweep reads the partitions by their names.
const missingRights = `WITH s AS (SELECT oid, nspname, nspowner FROM pg_namespace WHERE nspname = $1::text),
	t AS (SELECT c.oid, c.relowner, CASE WHEN c.relispartition THEN 'the partitions of semel_record' ELSE c.relname::text END AS name,
			CASE c.relname WHEN 'semel_meta' THEN ARRAY['SELECT', 'UPDATE'] ELSE ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] END AS needed
		FROM pg_class c JOIN s ON s.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND c.relname LIKE 'semel\_%'),
	m AS (SELECT t.name, t.relowner, array_to_string(ARRAY(SELECT p FROM unnest(t.needed) p WHERE NOT has_table_privilege(t.oid, p)), ', ') AS missing FROM t)
	SELECT current_user::text, format('USAGE on the schema %I', s.nspname),
		format('GRANT USAGE ON SCHEMA %I TO %I', s.nspname, current_user), pg_get_userbyid(s.nspowner)::text
		FROM s WHERE NOT has_schema_privilege(s.oid, 'USAGE')
	UNION ALL SELECT current_user::text, m.missing || ' on ' || string_agg(DISTINCT m.name, ', ' ORDER BY m.name),
		format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO %I', s.nspname, current_user), pg_get_userbyid(m.relowner)::text
		FROM m CROSS JOIN s WHERE m.missing <> '' GROUP BY m.missing, m.relowner, s.nspname`

// CheckRights returns an error that wraps pgwire.ErrRights unless the role of the connection
// has the rights on the schema and its tables that a store, its outbox and pgkafka need. The
// error has the commands that grant them.
func (s Schema) CheckRights(ctx context.Context, db pgwire.Querier) error {
	rows, err := db.Query(ctx, missingRights, s.Name)
	if err != nil {
		return err
	}
	var role, missing, grant, owner string
	var all, grants []string
	seen := map[string]bool{}
	_, err = pgx.ForEachRow(rows, []any{&role, &missing, &grant, &owner}, func() error {
		all = append(all, missing)
		if grant = fmt.Sprintf("as %s: %s", owner, grant); !seen[grant] {
			grants = append(grants, grant)
		}
		seen[grant] = true
		return nil
	})
	if err != nil || all == nil {
		return err
	}
	return fmt.Errorf("%w: %s has no %s; %s", pgwire.ErrRights, role, strings.Join(all, "; no "), strings.Join(grants, "; "))
}

// howToMigrate says which role can migrate.
const howToMigrate = `SELECT CASE WHEN n.oid IS NULL
		THEN format('as %s: GRANT CREATE ON DATABASE %I TO %I', pg_get_userbyid(d.datdba), d.datname, current_user)
		ELSE format('migrate as %s, which owns the schema %I', pg_get_userbyid(n.nspowner), n.nspname) END
	FROM pg_database d LEFT JOIN pg_namespace n ON n.nspname = $1::text WHERE d.datname = current_database()`

// explainRights adds to an error about rights what grants them. query is for the case in
// which CheckRights finds nothing.
func (s Schema) explainRights(ctx context.Context, db pgwire.Querier, err error, query string) error {
	if pgwire.Code(err) != pgwire.NoRight {
		return err
	}
	if missing := s.CheckRights(ctx, db); missing != nil {
		return fmt.Errorf("%w; %w", err, missing)
	}
	var next string
	if query == "" || db.QueryRow(ctx, query, s.Name).Scan(&next) != nil {
		return err
	}
	return fmt.Errorf("%w; %w: %s", err, pgwire.ErrRights, next)
}
