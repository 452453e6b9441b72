package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Check implements store.Checker. It asks each master (INFO, and CONFIG GET if
// that is allowed), and returns an ErrUnsafe for each setting with which records
// may be lost. It changes nothing. Most servers have such settings; the
// package's documentation lists their effects.
func (s *Store) Check(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return s.explain("check", err)
	}
	all, err := s.nodes(ctx)
	errs := []error{err}
	for _, n := range all {
		part, cancel := s.partContext(ctx)
		errs = append(errs, n.judge(part, func(set *settings) []finding { return append(set.running(&s.opt), set.durable(&s.opt)...) }))
		cancel()
	}
	return s.explain("check", errors.Join(errs...))
}

// judge reads the settings of a server and joins the findings.
func (n *node) judge(ctx context.Context, judge func(*settings) []finding) error {
	set, err := readSettings(ctx, *n)
	if err != nil {
		return n.explain(err)
	}
	var errs []error
	for _, f := range judge(set) {
		errs = append(errs, n.explain(fmt.Errorf("%w: %s: %s", ErrUnsafe, f.name, f.why)))
	}
	return errors.Join(errs...)
}

// settings are a server's INFO fields and its appendfsync, which is empty if
// CONFIG GET is not allowed.
type settings struct {
	info  map[string]string
	fsync string
}

func readSettings(ctx context.Context, n node) (*settings, error) {
	set := &settings{info: map[string]string{}}
	for _, section := range []string{"server", "memory", "persistence", "replication"} {
		text, err := n.client.Info(ctx, section).Result()
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				set.info[name] = value
			}
		}
	}
	if got, err := n.client.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		set.fsync = got["appendfsync"]
	}
	return set, nil
}

func (set *settings) number(name string) int {
	n, err := strconv.Atoi(set.info[name])
	if err != nil {
		return -1
	}
	return n
}

// finding is an unsafe setting and the reason.
type finding struct{ name, why string }

// running returns the settings with which a running server loses records or
// cannot take them.
func (set *settings) running(o *Options) (fs []finding) {
	policy, ok := set.info["maxmemory_policy"]
	if !ok {
		policy = "missing in INFO"
	}
	if policy != "noeviction" && !o.AllowEviction {
		fs = append(fs, finding{"maxmemory-policy is " + policy, "when memory is short, the server removes records, and their operations run again; set it to noeviction (or set Options.AllowEviction)"})
	}
	if set.info["role"] == "slave" {
		fs = append(fs, finding{"the server is a replica", "it takes no writes, and its reads are old; connect to the master, or through Sentinel"})
	}
	v := set.info["redis_version"]
	switch major, minor := version(v); {
	case major < 7:
		fs = append(fs, finding{"redis_version is " + v, "version 7 is the oldest that works; upgrade the server"})
	case o.Fsync && major == 7 && minor < 2:
		fs = append(fs, finding{"redis_version is " + v, "Options.Fsync needs WAITAOF, which begins with 7.2: each claim would be refused; upgrade the server, or clear Options.Fsync and set appendfsync to always"})
	}
	return fs
}

// version returns the first two numbers of a version, or 0.
func version(text string) (major, minor int) {
	first, rest, _ := strings.Cut(text, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ = strconv.Atoi(first)  // it is 0 if it fails
	minor, _ = strconv.Atoi(second) // the same
	return major, minor
}

// durable returns the settings with which records are lost when a server stops.
func (set *settings) durable(o *Options) (fs []finding) {
	aof := set.info["aof_enabled"] == "1"
	replicas := max(0, set.number("connected_slaves"))
	switch {
	case !aof:
		fs = append(fs, finding{"appendonly is no", "a restart or crash loses all changes since the last snapshot, if there is one; set it to yes"})
	case set.fsync == "":
		fs = append(fs, finding{"appendfsync is not known", "CONFIG GET is not allowed; if it is not always, the last second is lost when the machine fails"})
	case set.fsync != "always" && !o.Fsync:
		fs = append(fs, finding{"appendfsync is " + set.fsync, "the last second or more is lost when the machine fails; set it to always, or set Options.Fsync"})
	}
	if aof && set.info["aof_last_write_status"] == "err" {
		fs = append(fs, finding{"aof_last_write_status is err", "the server cannot write its log; check its disk"})
	}
	if o.Fsync && !aof {
		fs = append(fs, finding{"Options.Fsync without appendonly", "each claim is refused; set appendonly to yes"})
	}
	if replicas < o.Replicas {
		fs = append(fs, finding{fmt.Sprintf("connected_slaves is %d", replicas), fmt.Sprintf("each claim waits for Options.Replicas %d, and is refused; add replicas", o.Replicas)})
	}
	if replicas > 0 && o.Replicas == 0 {
		fs = append(fs, finding{"replicas without Options.Replicas", "a fail-over loses the changes that the new master has not received; set Options.Replicas"})
	}
	if replicas > 0 && set.number("min_slaves_good_slaves") < 0 {
		fs = append(fs, finding{"min-replicas-to-write is 0", "a master that is cut off accepts claims that are lost when it returns; set it to at least 1"})
	}
	return fs
}
