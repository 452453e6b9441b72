package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// options are the sizes of the measurements.
type options struct {
	rounds  int           // of which medians are taken
	each    time.Duration // how long a contender runs in a round
	callers []int
	pool    int           // keys that are replayed
	records []int         // in the tables of the section growth
	large   int           // records of one more table of that section, on PostgreSQL; 0: none
	kept    int           // records whose bytes are counted
	keys    int           // of the simulation of shards
	shards  []int         // numbers of shards of the simulation
	wait    time.Duration // how long a section may wait in all until others are quiet
	look    time.Duration // how long one look at other processes takes

	postgres *pgtest.Server // of all sections; nil: each section starts its own
}

// normal are the sizes of the figures in docs.
var normal = options{
	rounds: 7, each: 250 * time.Millisecond, callers: []int{1, 4, 16, 64}, pool: 1000,
	records: []int{10_000, 100_000, 1_000_000}, kept: 20_000, keys: 10_000_000, shards: []int{2, 4, 8, 16, 32, 64},
	wait: time.Minute, look: 200 * time.Millisecond,
}

// lab runs the measurements of one section.
type lab struct {
	opt    options
	root   string // of the repository
	dir    string // for files that are removed at the end
	out    io.Writer
	ends   []func() error // in reverse
	busy   []float64      // percent of the processors that other processes used before each round
	waited time.Duration
	pg     *pgtest.Server // nil until it is needed
}

func newLab(root string, opt options, out io.Writer) (*lab, error) {
	dir, err := os.MkdirTemp("", "semel-bench-")
	return &lab{opt: opt, root: root, dir: dir, out: out, pg: opt.postgres}, err
}

// say tells people how far it is. That nobody listens is no reason to stop.
func (l *lab) say(format string, args ...any) { _, _ = fmt.Fprintf(l.out, format+"\n", args...) }

// end ends all servers and removes all files.
func (l *lab) end() error {
	var errs []error
	for i := range l.ends {
		errs = append(errs, l.ends[len(l.ends)-1-i]())
	}
	l.ends = nil
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

func (l *lab) atEnd(f func() error) { l.ends = append(l.ends, f) }

// file is the path of a new file.
func (l *lab) file(name string) string { return filepath.Join(l.dir, name) }

// databases is how many databases were made.
var databases atomic.Int64

// postgres makes a database on a server that syncs each commit, with the memory for its
// tables that the manual advises for a small machine. The lab has one such server.
func (l *lab) postgres(ctx context.Context) (address string, busy func() time.Duration, err error) {
	if l.pg == nil {
		if l.pg, err = pgtest.New(append([]string{"shared_buffers=1GB", "max_wal_size=8GB", "min_wal_size=1GB", "max_connections=200"}, pgtest.Durable...)...); err != nil {
			return "", nil, err
		}
		l.atEnd(l.pg.Remove)
	}
	b, err := os.ReadFile(filepath.Join(l.pg.DataDir(), "postmaster.pid"))
	if err != nil {
		return "", nil, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return "", nil, err
	}
	conn, err := pgx.Connect(ctx, l.pg.URL())
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprint("bench_", databases.Add(1))
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return "", nil, err
	}
	to, err := url.Parse(l.pg.URL())
	if err != nil {
		return "", nil, err
	}
	to.Path = "/" + name
	return to.String(), func() time.Duration { return processTime(pid, true) }, nil
}

// redis starts a server.
func (l *lab) redis(settings []string) (s *redistest.Server, busy func() time.Duration, err error) {
	if s, err = redistest.New(settings...); err != nil {
		return nil, nil, err
	}
	l.atEnd(s.Remove)
	pid, err := redisPid(s.Addr())
	return s, func() time.Duration { return processTime(pid, false) }, err
}

// program is another process that listens.
type program struct {
	*proctest.Process
	url string
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)`)

// start starts a program that writes the line of listening to its standard error.
func (l *lab) start(cmd *exec.Cmd) (*program, error) {
	in, out := io.Pipe()
	log := &proctest.Log{}
	cmd.Stderr = io.MultiWriter(log, out)
	p, err := proctest.Start(cmd)
	if err != nil {
		return nil, err
	}
	l.atEnd(func() error { p.Kill(); return out.Close() })
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case addr := <-found:
		return &program{p, "http://" + addr}, nil
	case <-p.Ended():
		return nil, fmt.Errorf("%s ended: %s", cmd.Path, log.String())
	}
}

// sum is the processor time of several programs.
func sum(busy ...func() time.Duration) func() time.Duration {
	return func() (all time.Duration) {
		for _, f := range busy {
			all += f()
		}
		return all
	}
}

func (p *program) busy() time.Duration { return processTime(p.Pid(), false) }

// semelBinary builds the command semel.
func (l *lab) semelBinary(ctx context.Context) (string, error) {
	path := l.file("semel")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, "github.com/semel-go/semel/cmd/semel")
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
