// Package timed measures how long a store takes.
//
//	guard, err := semel.New(timed.New(st, record), nil)
//
// Module semelotel and the commands make their histograms of the latency with it.
package timed

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// Observe gets each request to a store that has ended: its name, which is one of
// Requests, how long it took, and its error. It must not block. Safe for concurrent use.
type Observe func(ctx context.Context, request string, took time.Duration, err error)

// Requests are the names of requests.
func Requests() []string { return []string{"claim", "swap", "renew", "settle", "get", "sweep"} }

// Store is a store whose requests are measured. Its optional interfaces are those of
// the inner store (see store.As), and are not measured. Make it with New.
type Store struct {
	store.Store
	observe Observe
}

// New makes a Store. Neither argument may be nil.
func New(st store.Store, observe Observe) *Store { return &Store{st, observe} }

// Unwrap lets store.As find the optional interfaces.
func (s *Store) Unwrap() store.Store { return s.Store }

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	start := time.Now()
	f, err := s.Store.Claim(ctx, p)
	s.observe(ctx, "claim", time.Since(start), err)
	return f, err
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	start := time.Now()
	f, err := s.Store.Swap(ctx, seen, p)
	s.observe(ctx, "swap", time.Since(start), err)
	return f, err
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	start := time.Now()
	each, err := s.Store.Renew(ctx, held, d)
	s.observe(ctx, "renew", time.Since(start), err)
	return each, err
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, to store.Settlement) error {
	start := time.Now()
	err := s.Store.Settle(ctx, l, to)
	s.observe(ctx, "settle", time.Since(start), err)
	return err
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	start := time.Now()
	f, err := s.Store.Get(ctx, k)
	s.observe(ctx, "get", time.Since(start), err)
	return f, err
}

// Sweep implements store.Store.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	start := time.Now()
	r, err := s.Store.Sweep(ctx, from, limit)
	s.observe(ctx, "sweep", time.Since(start), err)
	return r, err
}

// Answered reports whether the store has answered a request that ended with err. A
// record that is absent, changed or claimed by somebody else is an answer.
func Answered(err error) bool { return err == nil || store.Affects(err) == store.ExtentCall }
