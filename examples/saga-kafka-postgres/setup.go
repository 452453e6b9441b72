package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/examples/internal/kafkasend"
)

// history is the events of a service in the order of their commits, for people and tests.
// No constraint makes an effect unique, so that the example shows Semel's work.
const history = `CREATE TABLE IF NOT EXISTS history
	(n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, type text NOT NULL, order_id text NOT NULL, customer text NOT NULL);`

// setup creates the topics, databases and tables that do not exist.
func (c *config) setup(ctx context.Context) error {
	server, err := pgxpool.New(ctx, c.postgres)
	if err != nil {
		return err
	}
	defer server.Close()
	for name, s := range services {
		if err := kafkasend.CreateTopics(ctx, c.kafka, name, name); err != nil {
			return fmt.Errorf("topics of %s: %w", name, err)
		}
		if err := createDatabase(ctx, server, name); err != nil {
			return fmt.Errorf("database %s: %w", name, err)
		}
		d, err := c.open(ctx, s) // creates Semel's tables
		if err != nil {
			return err
		}
		_, err = d.pool.Exec(ctx, history+s.tables)
		d.close()
		if err != nil {
			return fmt.Errorf("tables of %s: %w", name, err)
		}
	}
	return nil
}

func createDatabase(ctx context.Context, server *pgxpool.Pool, name string) error {
	var exists bool
	err := server.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_database WHERE datname = $1", name).Scan(&exists)
	if !exists {
		_, createErr := server.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
		err = errors.Join(err, createErr)
	}
	return err
}
