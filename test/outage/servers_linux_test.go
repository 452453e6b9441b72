package outage

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// server is a private server of one test.
type server struct {
	addr   string
	open   func(ctx context.Context, addr string) (store.Store, func() error, error)
	freeze func(on bool)
	kill   func()
	start  func() error
}

var servers = map[string]func(t *testing.T) server{
	"PostgreSQL": func(t *testing.T) server {
		s := pgtest.Start(t, pgtest.Durable...)
		return server{
			addr: "127.0.0.1:" + strconv.Itoa(s.Port()), kill: s.Kill, start: s.Start,
			freeze: func(on bool) { freeze(t, s.DataDir(), on) },
			open: func(ctx context.Context, addr string) (store.Store, func() error, error) {
				st, err := pgstore.Open(ctx, "postgres://postgres@"+addr+"/postgres?sslmode=disable", nil)
				if err != nil {
					return nil, nil, err
				}
				return st, st.Close, nil
			},
		}
	},
	"Redis": func(t *testing.T) server {
		s := redistest.Start(t, redistest.Durable...)
		return server{
			addr: s.Addr(), kill: s.Kill, start: s.Start,
			freeze: func(on bool) {
				if on {
					s.Freeze()
				} else {
					s.Thaw()
				}
			},
			open: func(ctx context.Context, addr string) (store.Store, func() error, error) {
				st, err := redisstore.Open(ctx, "redis://"+addr, nil)
				if err != nil {
					return nil, nil, err
				}
				return st, st.Close, nil
			},
		}
	},
}

// freeze suspends a PostgreSQL server, or resumes it: its first process and the children
// of that one. The first is suspended before the children are listed, since it could
// start another one meanwhile, which would go on.
func freeze(t *testing.T, dataDir string, on bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	parent, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	sig := syscall.SIGCONT
	if on {
		sig = syscall.SIGSTOP
	}
	if err := syscall.Kill(parent, sig); err != nil {
		t.Fatal(err)
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == first {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
}
