package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// MaxPartitions limits the number of partitions, because a statement with a
// generic plan locks all of them although it reads one.
const MaxPartitions = 256

// PartitionedScript is the first migration with a table in n partitions, as
// pgstore.PartitionedInit returns it.
func PartitionedScript(n int) (string, error) {
	if n < 1 || n > MaxPartitions {
		return "", fmt.Errorf("pgstore: PartitionedInit: %d partitions; there must be 1 to %d", n, MaxPartitions)
	}
	return partitioned(upScripts()[0], n), nil
}

// partitioned changes the first migration so that the table of records has n
// partitions, each with the storage settings of the table. If n is 0, the script
// stays as it is.
//
// The partition follows from the id alone, and so does the unique index, so an id
// that is unique in its partition is unique in the table. A table that is partitioned
// by time has no such index, and grants a key once in each partition.
func partitioned(script string, n int) string {
	if n == 0 {
		return script
	}
	head, rest, _ := strings.Cut(script, ") WITH (\n")
	settings, tail, _ := strings.Cut(rest, "\n);\n")
	var b strings.Builder
	b.WriteString(head + ") PARTITION BY HASH (id);\n")
	for i := range n {
		fmt.Fprintf(&b, "CREATE TABLE \"semel\".%s_p%03d PARTITION OF \"semel\".%s FOR VALUES WITH (MODULUS %d, REMAINDER %d) WITH (\n%s\n);\n",
			table.Name, i, table.Name, n, i, settings)
	}
	return b.String() + tail
}

// Tables returns the quoted names of the partitions of the table of records in
// order, or the name of the table if it has none.
func (s Schema) Tables(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	var kind, key string
	err := pool.QueryRow(ctx, `SELECT c.relkind::text, coalesce(pg_get_partkeydef(c.oid), '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname = $2::text`, s.Name, table.Name).Scan(&kind, &key)
	if err != nil {
		return nil, fmt.Errorf("%w: the table %s is gone: %w", pgwire.ErrSchema, table.Name, err)
	}
	names := []string{pgx.Identifier{s.Name, table.Name}.Sanitize()}
	if kind == "p" {
		if key != "HASH (id)" {
			return nil, fmt.Errorf("%w: the table %s is partitioned by %s: only HASH (id) lets a key be granted once; see Options.Partitions", pgwire.ErrSchema, table.Name, key)
		}
		rows, err := pool.Query(ctx, `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE i.inhparent = format('%I.%I', $1::text, $2::text)::regclass ORDER BY c.relname COLLATE "C", n.nspname COLLATE "C"`, s.Name, table.Name)
		if err != nil {
			return nil, err
		}
		if names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: the table %s has no partitions", pgwire.ErrSchema, table.Name)
	}
	if count := len(names); s.Partitions != 0 && (kind != "p" || count != s.Partitions) {
		if kind != "p" {
			count = 0
		}
		return nil, fmt.Errorf("%w: the table %s has %d partitions, and Options.Partitions is %d: their number is fixed when the tables are made", pgwire.ErrSchema, table.Name, count, s.Partitions)
	}
	return names, nil
}
