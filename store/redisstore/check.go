package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Check implements store.Checker. It asks each master (INFO, and CONFIG GET
// where that is allowed); each setting under which records may be lost is an
// ErrUnsafe by name. It changes nothing. Most servers have some: the
// package's documentation says what each costs.
func (s *Store) Check(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return explain("check", s.judge(ctx, func(is *settings) []finding { return append(is.running(&s.opt), is.durable(&s.opt)...) }))
}

// firstLook refuses a server that loses records while it runs. It is asked
// until it will do, and then never again.
func (s *Store) firstLook(ctx context.Context) error {
	if s.safe.Load() {
		return nil
	}
	err := s.judge(ctx, func(is *settings) []finding { return is.running(&s.opt) })
	s.safe.Store(err == nil)
	return err
}

// judge has each master judged.
func (s *Store) judge(ctx context.Context, judge func(*settings) []finding) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, on := range all {
		is, err := readSettings(ctx, on)
		if err != nil {
			return err
		}
		for _, f := range judge(is) {
			where := ""
			if on.name != "" {
				where = "node " + on.name + ": "
			}
			errs = append(errs, fmt.Errorf("%w: %s%s: %s", ErrUnsafe, where, f.name, f.why))
		}
	}
	return errors.Join(errs...)
}

// settings are what a server tells of itself, in the words of INFO. Fsync is
// empty if CONFIG GET is not allowed.
type settings struct {
	info  map[string]string
	fsync string
}

func readSettings(ctx context.Context, on node) (*settings, error) {
	is := &settings{info: map[string]string{}}
	for _, section := range []string{"server", "memory", "persistence", "replication"} {
		text, err := on.on.Info(ctx, section).Result()
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				is.info[name] = value
			}
		}
	}
	if got, err := on.on.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		is.fsync = got["appendfsync"]
	}
	return is, nil
}

func (is *settings) number(name string) int {
	n, err := strconv.Atoi(is.info[name])
	if err != nil {
		return -1
	}
	return n
}

// finding is a setting, and why it will not do.
type finding struct{ name, why string }

// running are the settings that lose records, or can take none, while the
// server runs.
func (is *settings) running(o *Options) (fs []finding) {
	policy, told := is.info["maxmemory_policy"]
	if !told {
		policy = "not told by INFO"
	}
	if policy != "noeviction" && !o.AllowEviction {
		fs = append(fs, finding{"maxmemory-policy is " + policy, "short of memory, the server forgets records, and what they recorded runs again; set it to noeviction (or Options.AllowEviction, if that may happen)"})
	}
	if is.info["role"] == "slave" {
		fs = append(fs, finding{"the server is a replica", "it takes no writes, and shows the past; connect to the master, or through Sentinel"})
	}
	v := is.info["redis_version"]
	switch major, minor := version(v); {
	case major < 7:
		fs = append(fs, finding{"redis_version is " + v, "version 7 is the oldest that works; upgrade the server"})
	case o.Fsync && major == 7 && minor < 2:
		fs = append(fs, finding{"redis_version is " + v, "Options.Fsync needs WAITAOF, which begins with 7.2: each claim would be refused; upgrade the server, or leave it out and set appendfsync to always"})
	}
	return fs
}

// version is the first two numbers; 0 for one that is not told.
func version(text string) (major, minor int) {
	first, rest, _ := strings.Cut(text, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ = strconv.Atoi(first)  // it is 0 if it fails
	minor, _ = strconv.Atoi(second) // the same
	return major, minor
}

// durable are the settings that lose records when a server ends.
func (is *settings) durable(o *Options) (fs []finding) {
	aof := is.info["aof_enabled"] == "1"
	replicas := max(0, is.number("connected_slaves"))
	switch {
	case !aof:
		fs = append(fs, finding{"appendonly is no", "a restart, in order or by a crash, takes back all since the last snapshot, if there is one; set it to yes"})
	case is.fsync == "":
		fs = append(fs, finding{"appendfsync is not known", "CONFIG GET is not allowed; see to it that it is always, or accept to lose the last second when the machine fails"})
	case is.fsync != "always" && !o.Fsync:
		fs = append(fs, finding{"appendfsync is " + is.fsync, "when the machine fails, the last second or more is taken back; set it to always, or Options.Fsync"})
	}
	if aof && is.info["aof_last_write_status"] == "err" {
		fs = append(fs, finding{"aof_last_write_status is err", "the server cannot write its log; see to its disk"})
	}
	if o.Fsync && !aof {
		fs = append(fs, finding{"Options.Fsync without appendonly", "each claim is refused; set appendonly to yes"})
	}
	if replicas < o.Replicas {
		fs = append(fs, finding{fmt.Sprintf("connected_slaves is %d", replicas), fmt.Sprintf("each claim waits for Options.Replicas %d, and is refused; add replicas", o.Replicas)})
	}
	if replicas > 0 && o.Replicas == 0 {
		fs = append(fs, finding{"replicas without Options.Replicas", "a fail-over takes back what the new master had not got yet; set Options.Replicas"})
	}
	if replicas > 0 && is.number("min_slaves_good_slaves") < 0 {
		fs = append(fs, finding{"min-replicas-to-write is 0", "a master that is cut off goes on taking claims, which are lost when it comes back; set it to 1 at least"})
	}
	return fs
}
