package natstest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// cluster is three servers with JetStream, as a cluster.
type cluster struct {
	t       testing.TB
	servers []*server.Server
	options []*server.Options
	urls    string
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	const members = 3
	c := &cluster{t: t, servers: make([]*server.Server, members)}
	var ports []int
	for range 2 * members {
		port, err := proctest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	var routes []*url.URL
	for i := range members {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[members+i])})
		c.urls += fmt.Sprintf("nats://127.0.0.1:%d,", ports[i])
	}
	for i := range members {
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: ports[i], JetStream: true, StoreDir: storeDir(t), NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[members+i]}, Routes: routes,
		})
		c.start(i)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Shutdown()
			s.WaitForShutdown()
		}
	})
	js := c.connect(t)
	until(t, "the cluster has a leader", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := js.AccountInfo(ctx)
		return err == nil && c.current()
	})
	return c
}

// current reports whether each server knows the leader and lags behind in nothing.
func (c *cluster) current() bool {
	for _, s := range c.servers {
		if !s.JetStreamIsCurrent() {
			return false
		}
	}
	return true
}

func (c *cluster) start(i int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	c.servers[i] = s
}

// restart ends a server and starts it again, and returns when it has caught up.
func (c *cluster) restart(i int) {
	c.t.Helper()
	c.servers[i].Shutdown()
	c.servers[i].WaitForShutdown()
	c.start(i)
	until(c.t, "the cluster is complete again", c.current)
}

func (c *cluster) connect(t testing.TB) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(c.urls, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// harness is one over the cluster.
func (c *cluster) harness() consumetest.Harness {
	return consumetest.Harness{
		Store: func(testing.TB) store.Store { return memstore.New(nil) }, Patience: patience,
		Open: func(t testing.TB) consumetest.Broker { return openOn(t, c.connect, 3, nil) },
	}
}

// Consumers of a stream with three replicas come and go, and in the group the servers
// restart, too, while handlers fail and are slow.
func TestCampaign_Restarts_LoseNothing(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	c := newCluster(t)
	consumetest.ReportRestarts(t, "NATS, three servers", c.harness(), rounds, func(round int) {
		if round%5 == 4 {
			c.restart(round % len(c.servers))
		}
	})
}

func TestOneStuck_OthersGoOn(t *testing.T) {
	consumetest.ReportStuck(t, "NATS, three servers", newCluster(t).harness())
}

// repeat calls f until the cluster, which may be electing a leader, does it.
func repeat(t testing.TB, what string, f func(ctx context.Context) error) {
	t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		last = f(ctx)
		cancel()
		if last == nil {
			return
		}
		if e, ok := errors.AsType[*jetstream.APIError](last); ok && e.Code == 404 {
			break
		}
	}
	t.Fatalf("%s: %v", what, last)
}
