package importer

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/semel-go/semel/store/pgstore"       // the driver "pgx", too
	_ "github.com/semel-go/semel/store/sqlitestore" // the driver "sqlite"
)

// SQL is the rows of a query on a database, which is a URL: sqlite:PATH or
// postgres://…. rename gives columns the names of Columns. It uses the drivers of the
// stores.
func SQL(database, query string, rename map[string]string) (Source, error) {
	driver, name := "pgx", database
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		driver, name = "sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro"
	}
	return func(ctx context.Context) iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			if err := queryRows(ctx, driver, name, query, rename, yield); err != nil {
				yield(nil, err)
			}
		}
	}, nil
}

func queryRows(ctx context.Context, driver, name, query string, rename map[string]string, yield func(Row, error) bool) error {
	db, err := sql.Open(driver, name)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer func() { _ = db.Close() }() // it was only read
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("--from: %w", pgstore.ExplainConnect(err))
	}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("--query: %w", err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if err := renamed(columns, rename); err != nil {
		return err
	}
	for rows.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		row := Row{}
		for i, column := range columns {
			row[column] = values[i]
		}
		if !yield(row, nil) {
			return nil
		}
	}
	return rows.Err()
}

// renamed gives columns their names, and refuses a column without a meaning, because it
// may be a misspelled one, and two of one name, because one of them would not count.
func renamed(columns []string, rename map[string]string) error {
	for i, column := range columns {
		if to, ok := rename[column]; ok {
			columns[i] = to
		}
		if !slices.Contains(Columns(), columns[i]) {
			return fmt.Errorf("--query: the column %q has no meaning; name columns %s, by AS in the query or by --field NAME=%s", column, strings.Join(Columns(), ", "), column)
		}
		if slices.Contains(columns[:i], columns[i]) {
			return fmt.Errorf("--query: two columns are named %q; leave one out of the query", columns[i])
		}
	}
	if !slices.Contains(columns, "key") {
		return fmt.Errorf("--query: there is no column \"key\"; name one so, by AS in the query")
	}
	return nil
}
