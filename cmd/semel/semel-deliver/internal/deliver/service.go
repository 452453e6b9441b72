package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/sweep"
)

// Options configures a Service. All fields that are not explained are flags of the
// program, and checked.
type Options struct {
	Calls   Calls
	Sending Sending

	OnDoubt       semel.Policy
	Reconcile     *hook.Hook // nil: no hook
	ReconcileWait time.Duration

	Lease, StoreTimeout time.Duration
	Retention           time.Duration
	ShortRetention      bool
	MaxAttempts         int // 0: no limit
	// Backoff is the pause after the n-th try that did not finish a message. Nil:
	// consume.Backoff.
	Backoff func(n int) time.Duration
	Secrets []semel.Secret
	// HashKeys is semel.Options.HashKeys.
	HashKeys []byte

	Concurrency, InFlight int
	// TenantRequests limits the requests of one tenant at once, if Calls.TenantHeader is set.
	// Zero: no limit.
	TenantRequests int
	MaxBytes       int64
	Drain          time.Duration
	SweepEvery     time.Duration // 0: never

	// Started is called when the broker has answered and has all that is needed. Nil: no call.
	Started func()
	Log     *slog.Logger
}

// Service delivers the messages of a source. Make it with New.
type Service struct {
	opt     Options
	store   store.Store
	guard   *semel.Guard
	gate    *gate
	tenants *tenants // nil: all messages belong to one
	told    notices
	counts  metrics.Registry
	calls   *metrics.Calls
	sweeps  metrics.Sweeps
	decided decisions

	source   atomic.Pointer[bounded]
	draining atomic.Bool
}

// longestPause is the longest time for which an answer about the service stops all
// messages, or an answer about a tenant those of the tenant.
const longestPause = 30 * time.Second

// New makes a Service over a store. It does no I/O.
func New(st store.Store, o Options) (*Service, error) {
	if o.Backoff == nil {
		o.Backoff = consume.Backoff
	}
	s := &Service{opt: o, store: st}
	s.gate = newGate(longestPause, s.gateChanged)
	if o.Calls.TenantHeader != "" {
		s.tenants = newTenants(o.TenantRequests, longestPause, s.tenantWaits)
	}
	s.calls = s.counts.Calls(o.Calls.Operation, "")
	log := semel.LogEvents(o.Log)
	guard := &semel.Options{
		OnDoubt: o.OnDoubt, Lease: o.Lease, StoreTimeout: o.StoreTimeout, Retention: o.Retention, Secrets: o.Secrets, HashKeys: o.HashKeys,
		Observe: func(ctx context.Context, e semel.Event) {
			s.calls.Observe(ctx, e)
			log(ctx, e)
		},
	}
	if o.Reconcile != nil {
		guard.Reconcile = limited(o.Reconcile.Ask(st))
	}
	var err error
	if s.guard, err = semel.New(s.counts.Store(st), guard); err != nil {
		return nil, err
	}
	s.register()
	return s, nil
}

// Counts are the metrics.
func (s *Service) Counts() *metrics.Registry { return &s.counts }

// Serve delivers the messages of a source until ctx ends. Then it gives back the
// messages that were not sent, and waits up to Options.Drain for the other answers.
func (s *Service) Serve(ctx context.Context, src driver.Source) error {
	o := &s.opt
	run := newRunner(s.guard, s.gate, ctx.Done(), o.Concurrency, max(1, s.consumer().Concurrency/4))
	run.tenants = s.tenants
	if o.Reconcile != nil {
		run.wait = o.ReconcileWait
	}
	c, err := consume.New(run, o.Calls.Call, newSender(o.Sending, s.gate, o.Backoff).handle, s.consumer())
	if err != nil {
		return err
	}
	b := newBounded(src, o.MaxBytes, o.Sending.MaxBody, s.begin)
	s.source.Store(b)
	defer s.announceStop(ctx, b)()
	sweeping := make(chan struct{})
	sweepCtx, endSweeps := context.WithCancel(ctx)
	go func() {
		defer close(sweeping)
		if o.SweepEvery > 0 {
			_ = sweep.Run(sweepCtx, s.store, &sweep.Options{ // it fails for wrong options only
				Every: o.SweepEvery, Observe: semel.LogEvents(o.Log), AfterPass: s.sweeps.After(o.Log), AfterStep: s.sweeps.AfterStep,
				Retention: max(o.Retention, sweep.DefaultRetention), // records of other programs, too
			})
		}
	}()
	err = c.Serve(ctx, b)
	endSweeps()
	<-sweeping
	if e, ok := errors.AsType[*input.Error](err); ok {
		return e // it names a flag, which is enough
	}
	return err
}

// announceStop logs the stop as soon as it begins, and makes the service unready. The
// caller calls end when there is nothing more to announce.
func (s *Service) announceStop(ctx context.Context, b *bounded) (end func()) {
	announced := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(announced)
		s.draining.Store(true)
		s.opt.Log.Info("stopping", "in_flight", b.taken.Load(), "limit", s.opt.Drain)
	})
	return func() {
		if !cancel() {
			<-announced
		}
	}
}

func (s *Service) consumer() *consume.Options {
	o := &s.opt
	c := &consume.Options{
		MaxAttempts: o.MaxAttempts, Backoff: o.Backoff, AllowShortRetention: true, Reopen: s.guard, // checkHorizon has looked
		// As many messages again as are sent may be recorded, or wait for a place.
		Concurrency: min(2*o.Concurrency, o.InFlight), InFlight: o.InFlight, Drain: o.Drain, Observe: s.observe,
	}
	if o.MaxAttempts == 0 {
		c.MaxAttempts = -1
	}
	if o.Drain == 0 { // package consume takes zero for its default
		c.Drain = time.Nanosecond
	}
	return c
}

// begin checks the answer of the broker at the start.
func (s *Service) begin(info driver.Info) error {
	err := s.checkHorizon(info)
	if err == nil && s.opt.Started != nil {
		s.opt.Started()
	}
	return err
}

// checkHorizon refuses a broker that keeps messages for longer than their outcomes.
func (s *Service) checkHorizon(info driver.Info) error {
	if s.opt.ShortRetention || info.Horizon <= s.opt.Retention {
		return nil
	}
	kept := info.Horizon.String()
	if info.Horizon == driver.Forever {
		kept = "ever"
	}
	return &input.Error{Field: "--retention", Value: s.opt.Retention.String(), Want: fmt.Sprintf(
		"is shorter than the broker keeps messages, which is for %s: a message could come again after its outcome was deleted. Give a longer --retention; or --short-retention, and messages older than --retention go to the quarantine", kept)}
}

// readyTimeout limits a readiness check.
const readyTimeout = 2 * time.Second

// Ready returns nil if messages can be delivered: the broker has answered, the store
// answers, and no stop has begun.
func (s *Service) Ready(ctx context.Context) error {
	if s.draining.Load() {
		return errors.New("stopping")
	}
	if b := s.source.Load(); b == nil || !b.ready.Load() {
		return errors.New("the broker has not answered yet")
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := store.Ping(ctx, s.store); err != nil {
		return errors.Join(errors.New("the store does not answer"), err)
	}
	return nil
}
