package pgstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// recordTable is the name of the table of records, and with _p and a number
// behind it that of a partition.
const recordTable = "semel_record"

// maxPartitions: a statement with a plan that was kept locks all partitions,
// though it reads one.
const maxPartitions = 256

// PartitionedInit is the script 0001_init.up.sql of [Migrations] that makes
// the table of records in n partitions, 1 to 256; see Options.Partitions. The
// other scripts are the same.
func PartitionedInit(n int) (string, error) {
	if n < 1 || n > maxPartitions {
		return "", fmt.Errorf("pgstore: PartitionedInit: %d partitions; there must be 1 to %d", n, maxPartitions)
	}
	return partitioned(ups()[0], n), nil
}

// partitioned makes the table of the first script one with n partitions, each
// with the settings that the table has; 0: as it is.
//
// The partition follows from the id alone, and so does the unique index: what
// is unique in a partition is unique. A table that is partitioned by time has
// no such index, and there a key is granted once in each partition.
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
			recordTable, i, recordTable, n, i, settings)
	}
	return b.String() + tail
}

// part is one partition, or the whole table if it has none. Places of rows are
// those in a part, so what goes by them goes through each part by its name.
type part struct {
	over, remove, list string // statements
}

// findParts finds out what partitions the table has.
func (s *Store) findParts(ctx context.Context) ([]part, error) {
	var kind, key string
	err := s.own.QueryRow(ctx, `SELECT c.relkind::text, coalesce(pg_get_partkeydef(c.oid), '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname = $2::text`, s.opt.Schema, recordTable).Scan(&kind, &key)
	if err != nil {
		return nil, fmt.Errorf("%w: the table %s is gone: %w", ErrSchema, recordTable, err)
	}
	names := []string{pgx.Identifier{s.opt.Schema, recordTable}.Sanitize()}
	if kind == "p" {
		if key != "HASH (id)" {
			return nil, fmt.Errorf("%w: the table %s is partitioned by %s: only HASH (id) lets a key be granted once; see Options.Partitions", ErrSchema, recordTable, key)
		}
		rows, err := s.own.Query(ctx, `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE i.inhparent = format('%I.%I', $1::text, $2::text)::regclass ORDER BY c.relname COLLATE "C", n.nspname COLLATE "C"`, s.opt.Schema, recordTable)
		if err != nil {
			return nil, err
		}
		if names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: the table %s has no partitions", ErrSchema, recordTable)
	}
	if is := len(names); s.opt.Partitions != 0 && (kind != "p" || is != s.opt.Partitions) {
		if kind != "p" {
			is = 0
		}
		return nil, fmt.Errorf("%w: the table %s has %d partitions, and Options.Partitions is %d: their number is fixed when the tables are made", ErrSchema, recordTable, is, s.opt.Partitions)
	}
	parts := make([]part, len(names))
	for i, name := range names {
		in := strings.NewReplacer("{part}", name, "{part name}", literal(name))
		parts[i] = part{in.Replace(s.sql.over), in.Replace(s.sql.remove), in.Replace(s.sql.list)}
	}
	return parts, nil
}
