package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// noSchema checks that no schema of a demo is left.
func noSchema(t *testing.T, url string) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	var left int
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'semel%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

func TestCampaign_DemoOnPostgreSQL_PromisesHold(t *testing.T) {
	url := pgtest.Start(t, pgtest.Fast...).URL()
	r, code, told := result(t, "--store="+url)
	if code != 0 || len(r.Broken) != 0 {
		t.Fatalf("exit code %d, broken %q; told: %s", code, r.Broken, told)
	}
	s := r.With
	if s.DoubleCharges != 0 || s.Lost != 0 || s.Stuck != 0 || s.Charges != 200 || s.Kills != 16 || s.Replays == 0 || s.Reconciled == 0 {
		t.Errorf("with Semel: %+v", s)
	}
	noSchema(t, url)
}

func TestCampaign_DemoOnPostgreSQLInterrupted_DropsItsSchema(t *testing.T) {
	url := pgtest.Start(t, pgtest.Fast...).URL()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	dir := t.TempDir()
	c := command(t, dir, "--orders=100", "--kills=0", "--store="+url)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for there, end := 0, time.Now().Add(3*time.Minute); there == 0; <-tick.C {
		if err := db.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname LIKE 'semel_demo_%'").Scan(&there); err != nil || time.Now().After(end) {
			t.Fatalf("the demo has made no schema within 3 minutes; %v", err)
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || c.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	leftNothing(t, dir)
	noSchema(t, url)
}
