package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// refused is the error with which Serve does not start, or ends.
func refused(t *testing.T, s driver.Source, o *consume.Options, want ...string) error {
	t.Helper()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := consumer(t, guard(t, nil), nop, o)
	go func() { done <- c.Serve(ctx, s) }()
	err := wait(t, "Serve returned", done)
	if err == nil {
		t.Fatal("Serve returned nil")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Serve returned %q, want it to say %q", err, w)
		}
	}
	return err
}

func TestInfo_UnknownTopic_SaysSo(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		for _, missing := range []string{b.name, b.opt.DeadLetters, b.opt.Quarantine} {
			topics, o := []string{b.name}, b.opt
			switch missing {
			case b.name:
				topics = []string{"nowhere"}
			case b.opt.DeadLetters:
				o.DeadLetters = "nowhere"
			default:
				o.Quarantine = "nowhere"
			}
			s, err := semelkafka.New(b.name, topics, &o)
			if err != nil {
				t.Fatal(err)
			}
			if err := refused(t, s, nil, `topic "nowhere"`); !errors.Is(err, kerr.UnknownTopicOrPartition) {
				t.Errorf("it is %v", err)
			}
		}
		if groups, err := b.adm.ListGroups(t.Context()); err != nil || slices.Contains(groups.Groups(), b.name) {
			t.Errorf("it has joined: %v, %v", groups, err)
		}
	})
}

func TestInfo_TopicsThatLoseCopies_AreRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed, "max.message.bytes", "3000000")
		refused(t, b.source(t, nil), nil, b.opt.DeadLetters, "3000000", "max.message.bytes")
		compact := "compact"
		b = open(t, seed)
		compacted := b.name + ".compacted"
		b.create(t, compacted, map[string]*string{"cleanup.policy": &compact})
		refused(t, b.source(t, func(o *semelkafka.Options) { o.Quarantine = compacted }), nil, fmt.Sprintf("%q", compacted), "cleanup.policy")
	})
}

func TestInfo_Retention_IsThatOfTheTopics(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		for ms, want := range map[string]time.Duration{"3600000": time.Hour, "-1": driver.Forever} {
			info, err := open(t, seed, "retention.ms", ms).source(t, nil).Info(t.Context())
			if err != nil || info != (driver.Info{Horizon: want, HoldsOnly: true}) {
				t.Errorf("retention.ms=%s: %+v, %v", ms, info, err)
			}
		}
		b := open(t, seed, "retention.ms", "-1")
		c, err := consume.New(guard(t, nil), consume.Keyed("kafkatest", consume.BrokerID()), nop, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Serve(t.Context(), b.source(t, nil)); err == nil || !strings.Contains(err.Error(), "Retention") {
			t.Errorf("Serve: %v", err)
		}
		info, err := b.source(t, func(o *semelkafka.Options) { o.Horizon = time.Hour }).Info(t.Context())
		if err != nil || info.Horizon != time.Hour {
			t.Errorf("with Horizon: %+v, %v", info, err)
		}
	})
}

func TestInfo_WrongCredentials_SaysSo(t *testing.T) {
	t.Parallel()
	_, seed := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "semel", "secret"))
	credentials(t, seed, "EOF") // kfake hangs up, and says nothing
}

func TestInfo_WrongCredentialsOnARealKafka_SaysSo(t *testing.T) {
	t.Parallel()
	credentials(t, realBroker(t).addr(2), "SASL_AUTHENTICATION_FAILED")
}

// credentials checks a broker that asks at secured for a password.
func credentials(t *testing.T, secured, why string) {
	auth := func(password string) kgo.Opt {
		return kgo.SASL(plain.Auth{User: "semel", Pass: password}.AsMechanism())
	}
	name := fmt.Sprintf("sasl%d", brokers.Add(1))
	o := semelkafka.Options{DeadLetters: name + ".dead", Quarantine: name + ".quarantine", CommitEvery: 10 * time.Millisecond}
	adm := kadm.NewClient(client(t, secured, auth("secret")))
	for _, topic := range []string{name, o.DeadLetters, o.Quarantine} {
		if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
		known(t, adm, topic)
	}
	source := func(opts ...kgo.Opt) *semelkafka.Source {
		o := o
		o.Client = append(opts, kgo.SeedBrokers(secured), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
		s, err := semelkafka.New(name, []string{name}, &o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	begun := time.Now()
	refused(t, source(auth("wrong")), nil, secured, why)
	if d := time.Since(begun); d > time.Minute {
		t.Errorf("it took %v", d)
	}
	ran := make(chan struct{}, 1)
	serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
		ran <- struct{}{}
		return nil
	}, nil), source(auth("secret")))
	p := client(t, secured, auth("secret"), kgo.WithHooks(semelkafka.Stamper{}))
	if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: name, Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the message run with the right password", ran)
}

func TestInfo_BrokerDown_SaysSo(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	s, err := semelkafka.New("g", []string{"t"}, &semelkafka.Options{Client: []kgo.Opt{kgo.SeedBrokers(nobody)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := s.Info(ctx); err == nil || !strings.Contains(err.Error(), nobody) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Info: %v", err)
	}
}

// The broker goes away and comes back, with messages in work and in the log.
func TestServe_BrokerRestarts_GoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	again := func() (*fakeKafka, string) {
		return fake(t, kfake.DataDir(dir), kfake.SyncWrites(), kfake.Ports(p))
	}
	c, seed := again()
	downAndBack(t, seed, c.Close, func() { again() })
}

func TestServe_RealBrokerKilled_GoesOn(t *testing.T) {
	t.Parallel()
	real(t)
	k, err := startKafka() // one that others do not need
	if err != nil {
		t.Fatal(err)
	}
	proctest.RemoveAtEnd(t, k)
	downAndBack(t, k.addr(0), k.kill, func() {
		if err := k.proc.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

func downAndBack(t *testing.T, seed string, down, up func()) {
	b := open(t, seed)
	const n = 40
	var ran, failed atomic.Int64
	hold := make(chan struct{})
	for i := range n / 2 {
		b.Publish(t, msg(string(rune('A'+i)), ""))
	}
	s := b.source(t, nil)
	stop := serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
		if ran.Add(1) > 5 {
			<-hold
		}
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed && strings.Contains(e.Err.Error(), seed) {
			failed.Add(1)
		}
	}}), s)
	until(t, "some run", func() bool { return ran.Load() > 5 })
	down()
	close(hold)
	until(t, "the loss noticed", func() bool { return failed.Load() > 0 })
	up()
	for i := range n / 2 {
		b.Publish(t, msg(string(rune('a'+i)), ""))
	}
	b.settled(t)
	if ran.Load() != n {
		t.Errorf("%d handlers ran for %d messages", ran.Load(), n)
	}
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// The messages after the group's offset were deleted unread. Serve does not go
// on silently from the end.
func TestServe_OffsetOutOfRange_IsAnErrorUnlessAllowed(t *testing.T) {
	everywhere(t, outOfRange)
}

func outOfRange(t *testing.T, seed string) {
	for _, policy := range []semelkafka.Position{semelkafka.Refuse, semelkafka.Earliest, semelkafka.Latest} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			b := open(t, seed)
			b.to(t, 0, msg("a", ""))
			first := b.source(t, nil)
			stop := serve(t, consumer(t, guard(t, nil), nop, nil), first)
			b.settled(t)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			b.to(t, 0, msg("b", ""), msg("c", ""), msg("d", ""))
			b.cut(t, 3) // b and c
			s := b.source(t, func(o *semelkafka.Options) { o.OutOfRange = policy })
			if policy == semelkafka.Refuse {
				if err := refused(t, s, nil, b.name, "partition 0", "OutOfRange"); !errors.Is(err, kerr.OffsetOutOfRange) || !errors.Is(err, driver.ErrClosed) {
					t.Errorf("it is %v", err)
				}
				if at := b.committed(t, 0); at != 1 {
					t.Errorf("the group is at %d, want 1: for people to see what was lost", at)
				}
				return
			}
			var ran atomic.Int64
			serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
				ran.Add(1)
				return nil
			}, nil), s)
			if policy == semelkafka.Earliest {
				b.settled(t)
			} else {
				until(t, "one that is published later run", func() bool { // until the reset has happened
					b.to(t, 0, msg("e", ""))
					return ran.Load() > 0
				})
			}
			if n := ran.Load(); n != 1 {
				t.Errorf("%d messages ran, want 1", n)
			}
		})
	}
}

// A commit that is refused is told; the messages go on, and are committed when
// it is allowed again.
func TestServe_CommitRefused_IsReported(t *testing.T) {
	t.Parallel()
	c, seed := fake(t)
	b := open(t, seed)
	f := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: b.name, Err: kerr.GroupAuthorizationFailed, Count: -1})
	var ran, told atomic.Int64
	serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
		ran.Add(1)
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed && errors.Is(e.Err, kerr.GroupAuthorizationFailed) {
			told.Add(1)
		}
	}}), b.source(t, nil))
	b.Publish(t, msg("a", ""), msg("b", ""))
	until(t, "run and told", func() bool { return ran.Load() == 2 && told.Load() > 0 })
	if n := b.Unsettled(t); n != 2 {
		t.Errorf("%d are not committed, want 2", n)
	}
	f.Remove()
	b.settled(t)
}

// A member that the group has dropped joins again, and reads its partitions
// from the committed offsets.
func TestServe_MemberDropped_JoinsAgain(t *testing.T) {
	t.Parallel()
	c, seed := fake(t)
	b := open(t, seed)
	begun, release := make(chan struct{}, 10), make(chan struct{})
	var runs, gone atomic.Int64
	s := b.source(t, nil)
	serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
		runs.Add(1)
		begun <- struct{}{}
		<-release
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventGivenUp {
			gone.Add(1)
		}
	}}), s)
	b.to(t, 0, msg("k", ""))
	wait(t, "begun", begun)
	before := s.Stats().Rebalances
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: b.name, Err: kerr.UnknownMemberID})
	until(t, "joined again", func() bool { return s.Stats().Rebalances > before && len(s.Stats().Partitions) == partitions })
	close(release)
	b.settled(t)
	if runs.Load() != 1 {
		t.Errorf("its handler ran %d times", runs.Load())
	}
	until(t, "told that the first delivery is gone", func() bool { return gone.Load() == 1 })
}
