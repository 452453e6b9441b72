package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// New makes a store on the application's client of a server, of a Sentinel
// fail-over or of a Cluster. The store does not close the client. Several
// independent servers (redis.Ring) are refused, because keys move to another
// server when one is lost. New does no I/O: the first claim checks the server's
// settings, as [Open] does. Nil options are the defaults.
//
// Set the client's ContextTimeoutEnabled. Without it a call returns when its context
// ends, but its connection stays in use for ReadTimeout, and each call takes longer.
// Set DialerRetries to 1, because the default, 5, makes calls wait for a server that
// is not there. MaxRetries may stay as it is, because a change that is sent twice is
// applied once.
func New(client redis.UniversalClient, o *Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: New: the client is nil; use Open for a URL")
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, errors.New("redisstore: New: the client is a redis.Ring, which gives a key to another server when its own does not answer: the operation would run again; use a cluster, or shard over several stores")
	}
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opt: opt, scripts: newScripts(&opt), client: client, sweptFence: opt.Prefix + sweptFenceName}
	if s.cluster, _ = client.(*redis.ClusterClient); s.cluster == nil {
		s.inspections.single = newInspection(node{client: client})
	} else {
		s.inspections.byNode = map[string]*inspection{}
	}
	changes, reads := func() *batcher { return s.newBatcher(true) }, func() *batcher { return s.newBatcher(false) }
	s.changes, s.settles, s.reads = newBatchers(changes), newBatchers(changes), newBatchers(reads)
	return s, nil
}

// Open opens a store with its own client. It takes a URL as go-redis does, with
// TLS for rediss:// and options in the query:
//
//	redis://user:password@host:6379/0               a server
//	redis+cluster://host:6379?addr=host2:6379       a Cluster
//	redis+sentinel://host:26379?master_name=main    a fail-over by Sentinel
//
// A server whose settings lose records while it runs, or that is a replica, is
// ErrUnsafe; [Store.Check] says more. The ctx bounds the opening only.
func Open(ctx context.Context, rawURL string, o *Options) (*Store, error) {
	client, err := newClient(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redisstore: open: %w", err)
	}
	s, err := New(client, o)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.opened = true
	if err := s.inspectAll(ctx); err != nil {
		return nil, errors.Join(s.explain("open", err), s.Close())
	}
	return s, nil
}

// heedsContext reports whether the client's commands end with their contexts.
func (s *Store) heedsContext() bool {
	switch c := s.client.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return false
}

// newClient makes a client whose commands end with their contexts, and that tells
// at once if the server is not there: the store's callers send again.
func newClient(rawURL string) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	plain := base + "://" + rest
	if !ok {
		return nil, errors.New("the URL has no scheme: it must be redis://, rediss:// (TLS) or unix://, or redis+cluster://, redis+sentinel://")
	}
	switch kind {
	case "":
		cfg, err := redis.ParseURL(plain)
		if err != nil {
			return nil, hide(err)
		}
		cfg.ContextTimeoutEnabled, cfg.DialerRetries = true, 1
		return redis.NewClient(cfg), nil
	case "cluster":
		cfg, err := redis.ParseClusterURL(plain)
		if err != nil {
			return nil, hide(err)
		}
		cfg.ContextTimeoutEnabled, cfg.DialerRetries = true, 1
		cfg.ReadOnly, cfg.RouteByLatency, cfg.RouteRandomly = false, false, false // a replica shows the past
		return redis.NewClusterClient(cfg), nil
	case "sentinel":
		cfg, err := redis.ParseFailoverURL(plain)
		if err != nil {
			return nil, hide(err)
		}
		cfg.ContextTimeoutEnabled, cfg.DialerRetries = true, 1
		cfg.ReplicaOnly = false
		return redis.NewFailoverClient(cfg), nil
	}
	return nil, fmt.Errorf("the URL's scheme is %q; after the + it must be cluster or sentinel", scheme)
}

// hide removes the URL from an error, because it may hold a password.
func hide(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// Close waits until queued calls have their answers, and closes the client if
// Open made it. Later calls return ErrClosed. Calling Close again is harmless.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.changes.close()
	s.settles.close()
	s.reads.close()
	if s.opened {
		return s.client.Close()
	}
	return nil
}
