package kafkatest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// served lets a member handle all messages, and stop.
func (b *bank) served(t *testing.T, f form, br *broker) {
	t.Helper()
	s := br.source(t, nil)
	stop := b.member(t, f, s, nil, nil)
	br.settled(t)
	if err := errors.Join(stop(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// ends serves until Serve returns by itself, or until a message has an effect more
// than the n that there are. It returns Serve's error.
func (b *bank) ends(t *testing.T, f form, s *semelkafka.Source, n int) (err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.serve(ctx, f, s, nil, nil) }()
	until(t, "Serve ended, and no message run", func() bool {
		select {
		case err = <-done:
			return true
		default:
			return len(b.effects(t)) > n
		}
	})
	return err
}

// wantOtherLog checks the error of a position that belongs to another log.
func wantOtherLog(t *testing.T, br *broker, err error, more ...string) {
	t.Helper()
	if !errors.Is(err, driver.ErrClosed) {
		t.Fatalf("Serve: %v; want driver.ErrClosed", err)
	}
	for _, w := range append(more, br.name, "partition 0", "leader epoch", "--reset-offsets", "pgkafka.Forget") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Serve returned %q, want it to say %q", err, w)
		}
	}
}

// otherLast changes what is known of the last message of partition 0, as if the log
// had another one there.
func (b *bank) otherLast(t *testing.T, br *broker, f form, column string) {
	t.Helper()
	if f == offsets {
		_, err := b.pool.Exec(t.Context(), "UPDATE "+pgx.Identifier{b.schema, "semel_watermark"}.Sanitize()+" SET "+column+" = "+column+" + 1 WHERE consumer = $1 AND partition = 0", br.name)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	done, err := br.adm.FetchOffsets(t.Context(), br.name)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := done.Lookup(br.name, 0)
	before, last, ok := strings.Cut(at.Metadata, "last=")
	if !ok {
		t.Fatalf("the metadata of the commit is %q", at.Metadata)
	}
	if column == "last_time" {
		at.Metadata = before + "last=" + last + "9"
	} else {
		at.Metadata = before + "last=9" + last
	}
	o := kadm.Offsets{}
	o.Add(at.Offset)
	if r, err := br.adm.CommitOffsets(t.Context(), br.name, o); errors.Join(err, r.Error()) != nil {
		t.Fatal(err, r.Error())
	}
}

// The log has another message before the position: a message with another
// timestamp, or of another leader. The messages after it may be new ones at
// offsets that were done, so that none may be skipped or run.
func TestServeBatches_OtherMessageBeforePosition_Returns(t *testing.T) {
	for _, column := range []string{"last_time", "last_epoch"} {
		t.Run(column, func(t *testing.T) {
			formsEverywhere(t, func(t *testing.T, f form, seed string) {
				br, b := open(t, seed), openBank(t)
				br.to(t, 0, numbered("m", 5, "")...)
				b.served(t, f, br)
				b.otherLast(t, br, f, column)
				br.to(t, 0, msg("next", ""))
				s := br.source(t, func(o *semelkafka.Options) { o.OutOfRange = semelkafka.Earliest })
				wantOtherLog(t, br, b.ends(t, f, s, 5), "offset 5", "timestamp")
				if got := b.effects(t); len(got) != 5 {
					t.Errorf("the effects are %q, want those of the first five messages", got)
				}
			})
		})
	}
}

// The message before the position is still there, was deleted, or is followed by
// markers of transactions. Each time the next message runs, and no earlier one again.
func TestServeBatches_SameLog_GoesOn(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		for name, deletes := range map[string]int64{"there": 0, "deleted": 5, "deleted with its markers": 10} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				br, b := open(t, seed), openBank(t)
				want := bodies(numbered("m", 5, "")...)
				if name == "deleted with its markers" {
					br.transact(t, numbered("m", 5, "")...)
				} else {
					br.to(t, 0, numbered("m", 5, "")...)
				}
				b.served(t, f, br)
				if deletes > 0 {
					br.cut(t, deletes)
				}
				br.to(t, 0, msg("next", ""))
				if err := b.ends(t, f, br.source(t, nil), 5); err != nil {
					t.Fatal("Serve:", err)
				}
				if got := b.effects(t); !slices.Equal(got, append(want, "next")) {
					t.Errorf("the effects are %q", got)
				}
			})
		}
	})
}

// Without a ledger the position is Kafka's commit.
func TestServe_OtherMessageBeforePosition_Returns(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		b.to(t, 0, numbered("m", 5, "")...)
		r := &readiness{}
		c := consumer(t, guard(t, nil), r.handle, nil)
		s := b.source(t, nil)
		stop := serve(t, c, s)
		b.settled(t)
		if err := errors.Join(stop(), s.Close()); err != nil {
			t.Fatal(err)
		}
		(&bank{}).otherLast(t, b, keyed, "last_time")
		b.to(t, 0, msg("next", ""))
		wantOtherLog(t, b, refused(t, b.source(t, nil), nil), "offset 5")
	})
}

// A broker is restored from an older copy of its data, and new messages are
// published at offsets that are done. Serve ends, and skips none of them. After
// the group and the ledger are set back, as the error says, they run.
func TestServeBatches_BrokerRestored_EndsAndSkipsNothing(t *testing.T) {
	if os.Getenv("SEMEL_EVIDENCE") == "" {
		t.Skip("needs a broker of its own, which starts three times: set SEMEL_EVIDENCE=1; TestServeBatches_OtherMessageBeforePosition_Returns is its short form")
	}
	t.Parallel()
	real(t)
	k, err := startKafka()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Remove() })
	data, backup := filepath.Join(k.proc.Dir, "data"), filepath.Join(t.TempDir(), "data")
	seed := k.addr(0)
	b := openBank(t)
	topics := map[form]*broker{keyed: open(t, seed), offsets: open(t, seed)}
	for f, br := range topics {
		br.to(t, 0, numbered("kept "+string(f), 3, "")...)
	}
	k.proc.End(syscall.SIGTERM)
	if err := errors.Join(os.CopyFS(backup, os.DirFS(data)), k.proc.Start()); err != nil {
		t.Fatal(err)
	}
	for f, br := range topics {
		br.to(t, 0, numbered("lost "+string(f), 5, "")...)
		b.served(t, f, br)
	}
	committed := map[form]kadm.Offset{} // the group's coordinator may be another broker, which has lost nothing
	for f, br := range topics {
		done, err := br.adm.FetchOffsets(t.Context(), br.name)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := done.Lookup(br.name, 0)
		committed[f] = at.Offset
	}
	k.proc.End(syscall.SIGTERM)
	if err := errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(backup)), k.proc.Start()); err != nil {
		t.Fatal(err)
	}
	for f, br := range topics {
		br.cl = client(t, seed, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		br.adm = kadm.NewClient(br.cl)
		br.to(t, 0, numbered("new "+string(f), 8, "")...)
		o := kadm.Offsets{}
		o.Add(committed[f])
		if r, err := br.adm.CommitOffsets(t.Context(), br.name, o); errors.Join(err, r.Error()) != nil {
			t.Fatal(err, r.Error())
		}
		s := br.source(t, nil)
		wantOtherLog(t, br, b.ends(t, f, s, len(b.effects(t))))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for f, br := range topics {
		o := kadm.Offsets{}
		o.Add(kadm.Offset{Topic: br.name, Partition: 0, At: 3, LeaderEpoch: -1})
		if r, err := br.adm.CommitOffsets(t.Context(), br.name, o); errors.Join(err, r.Error()) != nil {
			t.Fatal(err, r.Error())
		}
		if err := pgkafka.Forget(t.Context(), b.st, br.name, br.name); err != nil {
			t.Fatal(err)
		}
		b.served(t, f, br)
	}
	effects := b.effects(t)
	if keys, double := tally(effects); keys != 2*(3+5+8) || double > 0 {
		t.Errorf("%d messages have an effect, want 32, and %d are double: %q", keys, double, effects)
	}
}

// The messages at the position were deleted unread, and the options say to go on at
// the end of the log: a message after it runs, and nothing waits for the deleted ones.
func TestServeBatches_OutOfRangeLatest_GoesOnAtTheEnd(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		br, b := open(t, seed), openBank(t)
		br.to(t, 0, numbered("m", 5, "")...)
		br.rewind(t)
		br.cut(t, 3)
		s := br.source(t, func(o *semelkafka.Options) { o.OutOfRange = semelkafka.Latest })
		outage := make(chan error, 1)
		b.member(t, f, s, nil, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
			if e.Kind == consume.EventOutage {
				select {
				case outage <- e.Err:
				default:
				}
			}
		}})
		until(t, "the end committed", func() bool { return br.committed(t, 0) == 5 })
		br.to(t, 0, msg("next", ""))
		until(t, "the next message settled", func() bool {
			select {
			case err := <-outage:
				t.Fatal("the message waits:", err)
			default:
			}
			return br.Unsettled(t) == 0
		})
		b.want(t, "next")
	})
}
