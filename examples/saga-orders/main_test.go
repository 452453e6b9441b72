package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// The test runs itself as the program, so that it can kill it.
func TestMain(m *testing.M) {
	if os.Getenv("SAGA_ORDERS") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// However often the program is killed, each order ends booked or undone, and the books
// add up.
func TestOrders_ProgramKilled_BooksAddUp(t *testing.T) {
	dir := t.TempDir()
	program := func() *exec.Cmd {
		cmd := proctest.Self(t, "SAGA_ORDERS=1")
		cmd.Args = []string{cmd.Args[0], "-db", filepath.Join(dir, "orders.db"), "-shop", filepath.Join(dir, "shop.db"), "-orders", "12", "-pause", "5ms"}
		return cmd
	}
	for i := range 3 {
		p, err := proctest.Start(program())
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-p.Ended():
		case <-time.After(time.Duration(200+100*i) * time.Millisecond):
		}
		p.Kill()
	}
	var out bytes.Buffer
	cmd := program()
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// Of 12 orders 3 have a customer without money, 2 an item that the shop does not have.
	if want := "12 orders: 7 booked, 7000 cents in the bank, 7 books and 0 ghosts held"; !strings.Contains(out.String(), want) {
		t.Errorf("the program says\n%s\nwant %q at the end", out.String(), want)
	}
}
