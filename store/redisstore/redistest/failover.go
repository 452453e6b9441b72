package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Failover is a master with a replica, and a Sentinel that promotes the replica
// when the master dies. Make it with [StartFailover].
type Failover struct {
	Master, Replica *Server
	sentinel        *Server
}

// masterName is the master's name in the Sentinel's settings.
const masterName = "main"

// StartFailover makes a Failover that only t uses and whose servers t may kill,
// and removes it when t ends. It returns when the replica has the master's data
// and the Sentinel knows both. It skips the test if there is no program.
func StartFailover(t testing.TB, args ...string) *Failover {
	t.Helper()
	return startFailover(t, nil, args)
}

// StartFailoverTLS is StartFailover for servers and a Sentinel that speak TLS
// with each other and with clients. Clients need no certificate.
func StartFailoverTLS(t testing.TB, a *Authority, names []string, args ...string) *Failover {
	t.Helper()
	tlsArgs, err := a.serverArgs(names...)
	if err != nil {
		t.Fatal(err)
	}
	return startFailover(t, append(tlsArgs, "--tls-auth-clients", "no", "--tls-replication", "yes"), args)
}

// startFailover starts the servers. They speak TLS if tlsArgs is not nil.
func startFailover(t testing.TB, tlsArgs, args []string) *Failover {
	t.Helper()
	args = slices.Concat([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, tlsArgs, args)
	start := func(args ...string) *Server { return started(t, &Server{args: args, tls: tlsArgs != nil}) }
	f := &Failover{Master: start(args...)}
	port := f.Master.port
	if tlsArgs != nil {
		port = f.Master.tlsPort
	}
	f.Replica = start(append([]string{"--replicaof", fmt.Sprint("127.0.0.1 ", port)}, args...)...)
	// A busy machine can suspend a server for seconds. The Sentinel must not take
	// that for a death.
	conf := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 1\nsentinel down-after-milliseconds %[1]s 5000\nsentinel failover-timeout %[1]s 5000\n", masterName, port)
	for i := 0; i < len(tlsArgs); i += 2 {
		conf += strings.TrimPrefix(tlsArgs[i], "--") + " " + tlsArgs[i+1] + "\n"
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf") // the Sentinel rewrites it
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	f.sentinel = started(t, &Server{config: file, tls: tlsArgs != nil})
	if err := until(f.Whole); err != nil {
		t.Fatal(err)
	}
	return f
}

// URL is the address of the Sentinel for redisstore.Open.
func (f *Failover) URL() string {
	return "redis+sentinel://" + f.sentinel.Addr() + "?master_name=" + masterName
}

// TLSURL is the address where the Sentinel of [StartFailoverTLS] speaks TLS.
func (f *Failover) TLSURL() string {
	return "rediss+sentinel://" + f.sentinel.TLSAddr() + "?master_name=" + masterName
}

// Whole is nil if the replica follows the master and the Sentinel knows it.
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
			err = errors.New("redistest: the replica is not online for the master yet")
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

// Cut ends the replication: the replica then looks for a master on a port where
// none listens.
func (f *Failover) Cut() error {
	return with(f.Replica.Addr(), func(r *redis.Client) error {
		return r.ReplicaOf(context.Background(), "127.0.0.1", "1").Err()
	})
}

// Promoted waits until the Sentinel has made the replica the master.
func (f *Failover) Promoted() error {
	return with(f.Replica.Addr(), func(r *redis.Client) error {
		return until(func() error {
			role, err := r.Do(context.Background(), "role").Slice()
			if err == nil && role[0] != "master" {
				err = fmt.Errorf("redistest: the role of the replica is %v, not master", role[0])
			}
			return err
		})
	})
}
