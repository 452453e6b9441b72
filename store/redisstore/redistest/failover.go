package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Failover is a master with a replica, and a Sentinel that puts the replica in
// its place when it dies. Make it with [StartFailover].
type Failover struct {
	Master, Replica *Server
	sentinel        *Server
}

// masterName is what the Sentinel calls the master.
const masterName = "main"

// StartFailover makes one that t alone uses, may kill, and removes in the end.
// It returns when the replica has the master's data and the Sentinel knows
// both. It skips the test if there is no program.
func StartFailover(t testing.TB, args ...string) *Failover {
	t.Helper()
	return startFailover(t, nil, args, func(args []string) *Server { return Start(t, args...) })
}

// StartFailoverTLS is StartFailover, for servers and a Sentinel that speak TLS
// with clients, who need no certificate, and with each other.
func StartFailoverTLS(t testing.TB, a *Authority, names []string, args ...string) *Failover {
	t.Helper()
	secret, err := a.serverArgs(names...)
	if err != nil {
		t.Fatal(err)
	}
	secret = append(secret, "--tls-auth-clients", "no", "--tls-replication", "yes")
	return startFailover(t, secret, append(secret, args...), func(args []string) *Server {
		s, err := newServer(&Server{args: args, tls: true})
		need(t, err)
		removeWith(t, s)
		return s
	})
}

// startFailover starts the servers by start. Secret are the Sentinel's settings
// for TLS; nil: it speaks none.
func startFailover(t testing.TB, secret, args []string, start func(args []string) *Server) *Failover {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, args...)
	f := &Failover{Master: start(args)}
	at := f.Master.port
	if secret != nil {
		at = f.Master.tlsPort
	}
	f.Replica = start(append([]string{"--replicaof", fmt.Sprint("127.0.0.1 ", at)}, args...))
	// A machine that does much else pauses for seconds: no death may be seen there.
	conf := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 1\nsentinel down-after-milliseconds %[1]s 5000\nsentinel failover-timeout %[1]s 5000\n", masterName, at)
	for i := 0; i < len(secret); i += 2 {
		conf += strings.TrimPrefix(secret[i], "--") + " " + secret[i+1] + "\n"
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	f.sentinel, err = newSentinel(file, secret != nil)
	need(t, err)
	removeWith(t, f.sentinel)
	if err := until(f.Whole); err != nil {
		t.Fatal(err)
	}
	return f
}

// newSentinel starts a Sentinel. It rewrites its file.
func newSentinel(file string, secret bool) (*Server, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, file: file, tls: secret}
	if s.dir, err = os.MkdirTemp("", "semel-sentinel-"); err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// URL is where the Sentinel answers, in the words of redisstore.Open.
func (f *Failover) URL() string {
	return "redis+sentinel://" + f.sentinel.Addr() + "?master_name=" + masterName
}

// TLSURL is where the Sentinel of [StartFailoverTLS] speaks TLS.
func (f *Failover) TLSURL() string {
	return "rediss+sentinel://" + f.sentinel.TLSAddr() + "?master_name=" + masterName
}

// Whole is nil if the replica follows the master, and the Sentinel knows it.
func (f *Failover) Whole() error {
	ctx := context.Background()
	err := with(f.Replica.Addr(), func(r *redis.Client) error {
		info, err := r.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = errors.New("redistest: the replica does not follow its master yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	err = with(f.Master.Addr(), func(r *redis.Client) error {
		info, err := r.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "state=online") {
			err = errors.New("redistest: the master does not take the replica for whole yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	s := redis.NewSentinelClient(&redis.Options{Addr: f.sentinel.Addr()})
	defer func() { _ = s.Close() }()
	known, err := s.Replicas(ctx, masterName).Result()
	if err == nil && (len(known) != 1 || known[0]["master-link-status"] != "ok" || !strings.Contains(known[0]["flags"], "slave")) {
		err = errors.New("redistest: the Sentinel does not know the replica yet")
	}
	return err
}

// Cut ends the replication: the replica looks for a master where none is.
func (f *Failover) Cut() error {
	return with(f.Replica.Addr(), func(r *redis.Client) error {
		return r.ReplicaOf(context.Background(), "127.0.0.1", "1").Err()
	})
}

// Promoted waits until the Sentinel has put the replica in the master's place.
func (f *Failover) Promoted() error {
	return with(f.Replica.Addr(), func(r *redis.Client) error {
		return until(func() error {
			role, err := r.Do(context.Background(), "role").Slice()
			if err == nil && role[0] != "master" {
				err = fmt.Errorf("redistest: the replica is a %v", role[0])
			}
			return err
		})
	})
}
