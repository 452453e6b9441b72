package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of a cluster.
const slots = 16384

// Cluster is a private cluster. Make it with [StartCluster].
type Cluster struct {
	// Masters have the slots in equal parts. Replicas has one for each master,
	// or is empty.
	Masters, Replicas []*Server
}

// StartCluster makes a cluster of three masters, with a replica of each if
// replicas is set. Only t uses it and may kill its nodes, and it is removed when
// t ends. StartCluster returns when each node knows the whole cluster. It skips
// the test if there is no program.
func StartCluster(t testing.TB, replicas bool, args ...string) *Cluster {
	t.Helper()
	return startCluster(t, replicas, Start, args)
}

// StartClusterTLS is StartCluster for nodes that speak TLS with clients and with
// each other, as servers of [StartTLS] do. The cluster has no replicas.
func StartClusterTLS(t testing.TB, a *Authority, names []string, args ...string) *Cluster {
	t.Helper()
	start := func(t testing.TB, args ...string) *Server {
		t.Helper()
		return StartTLS(t, a, names, args...)
	}
	return startCluster(t, false, start, append([]string{"--tls-cluster", "yes"}, args...))
}

func startCluster(t testing.TB, replicas bool, start func(t testing.TB, args ...string) *Server, args []string) *Cluster {
	t.Helper()
	args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"}, args...)
	c := &Cluster{}
	for range 3 {
		c.Masters = append(c.Masters, start(t, args...))
		if replicas {
			c.Replicas = append(c.Replicas, start(t, args...))
		}
	}
	if err := c.join(); err != nil {
		t.Fatal(err)
	}
	// Joining waits for parts of this timeout, so it was short until now. From here
	// on the nodes must take neither a pause of a busy machine nor a node that a test
	// freezes for a death, because then no node serves its slots.
	if err := c.noticeDeathsIn(30 * time.Minute); err != nil {
		t.Fatal(err)
	}
	return c
}

// Kill crashes the master that has the first slots. Its replica, if it has one,
// takes over within seconds.
func (c *Cluster) Kill() error {
	if err := c.noticeDeathsIn(5 * time.Second); err != nil {
		return err
	}
	c.Masters[0].Kill()
	return nil
}

func (c *Cluster) noticeDeathsIn(d time.Duration) error {
	for _, s := range c.all() {
		err := with(s.Addr(), func(r *redis.Client) error {
			return r.ConfigSet(context.Background(), "cluster-node-timeout", strconv.FormatInt(d.Milliseconds(), 10)).Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) all() []*Server { return append(append([]*Server{}, c.Masters...), c.Replicas...) }

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() (addrs []string) {
	for _, s := range c.all() {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// URL is the address of the cluster for redisstore.Open.
func (c *Cluster) URL() string {
	addrs := c.Addrs()
	return "redis+cluster://" + addrs[0] + "?addr=" + strings.Join(addrs[1:], "&addr=")
}

// TLSURL is the address where a cluster of [StartClusterTLS] speaks TLS.
func (c *Cluster) TLSURL() string {
	var addrs []string
	for _, s := range c.all() {
		addrs = append(addrs, s.TLSAddr())
	}
	return "rediss+cluster://" + addrs[0] + "?addr=" + strings.Join(addrs[1:], "&addr=")
}

func (c *Cluster) join() error {
	ctx := context.Background()
	for i, s := range c.all() {
		err := with(s.Addr(), func(r *redis.Client) error {
			if err := r.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
				return err
			}
			if i < len(c.Masters) {
				n := len(c.Masters)
				return r.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err()
			}
			return nil
		})
		if err != nil {
			return err
		}
		if i > 0 {
			err = with(c.Masters[0].Addr(), func(r *redis.Client) error {
				port := s.port
				if s.tls { // the nodes connect to each other 10000 above this port
					port = s.tlsPort
				}
				return r.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(port)).Err()
			})
		}
		if err != nil {
			return err
		}
	}
	for i, s := range c.Replicas {
		id := ""
		err := with(c.Masters[i].Addr(), func(r *redis.Client) (err error) {
			id, err = r.Do(ctx, "cluster", "myid").Text()
			return err
		})
		if err != nil {
			return err
		}
		err = with(s.Addr(), func(r *redis.Client) error {
			return until(func() error { return r.ClusterReplicate(ctx, id).Err() }) // the replica has to learn of the master first
		})
		if err != nil {
			return err
		}
	}
	return until(c.whole)
}

// whole is nil if each node knows all nodes and the master of each slot, and each
// replica has its master's data.
func (c *Cluster) whole() error {
	ctx := context.Background()
	for i, s := range c.all() {
		err := with(s.Addr(), func(r *redis.Client) error {
			info, err := r.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_slots_assigned:%d", slots), fmt.Sprintf("cluster_known_nodes:%d", len(c.all()))} {
				if !strings.Contains(info, want+"\r\n") {
					return errors.New("redistest: a node does not know the whole cluster yet")
				}
			}
			replica, err := r.Info(ctx, "replication").Result()
			if err == nil && i >= len(c.Masters) && !strings.Contains(replica, "master_link_status:up") {
				err = errors.New("redistest: a replica does not follow its master yet")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// with calls fn with a client for an address.
func with(addr string, fn func(*redis.Client) error) error {
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	return fn(c)
}
