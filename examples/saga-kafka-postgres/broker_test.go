//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/internal/proctest"
)

// broker is a Kafka in a process of its own, which keeps its data when it is killed.
type broker struct {
	where  string
	port   int
	proc   proctest.Server
	client *kgo.Client
	admin  *kadm.Client
}

// limit is how long a broker may take to start.
const limit = 10 * time.Minute

// startBroker starts Apache Kafka, or a kfake that keeps its data in files.
func startBroker(t *testing.T, apache bool) *broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "semel-saga-") //nolint:usetesting // the server deletes it after its end
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{where: "kfake"}
	command := func() (*exec.Cmd, error) {
		text := fmt.Sprintf(`%s={"Command": "broker", "Port": %d, "Dir": %q}`, childVariable, b.port, filepath.Join(dir, "data"))
		return proctest.Self(t, text), nil
	}
	if apache {
		script, err := filepath.Abs(filepath.Join("..", "..", "scripts", "kafka", "kafka"))
		if err != nil {
			t.Fatal(err)
		}
		b.where = "Apache Kafka"
		command = func() (*exec.Cmd, error) { return exec.Command(script, "run", dir, fmt.Sprint(b.port)), nil }
	}
	b.proc = proctest.Server{Name: b.where, Dir: dir, Limit: limit, Ready: func(*proctest.Process) error { return b.ping() },
		Command: func(first bool) (*exec.Cmd, error) {
			var err error
			if first {
				b.port, err = proctest.FreePort(1, 2)
			}
			if err != nil {
				return nil, err
			}
			return command()
		}}
	t.Cleanup(func() {
		if err := b.proc.Remove(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	if err := b.proc.Start(); err != nil {
		t.Fatal(err)
	}
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.addr())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	b.admin = kadm.NewClient(b.client)
	return b
}

func (b *broker) addr() string { return fmt.Sprint("127.0.0.1:", b.port) }

func (b *broker) ping() error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr()))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return client.Ping(ctx)
}

// restart kills the broker, and starts it again.
func (b *broker) restart() error {
	b.proc.End(syscall.SIGKILL)
	return b.proc.Start()
}

// evict removes the members of a group; those that live join again. After a restart kfake
// knows the members of before, and waits for ever for one that has died meanwhile.
func (b *broker) evict(ctx context.Context, group string) error {
	groups, err := b.admin.DescribeGroups(ctx, group)
	if err != nil {
		return err
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = group
	for _, m := range groups[group].Members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		leave.Members = append(leave.Members, member)
	}
	_, err = leave.RequestWith(ctx, b.client)
	return err
}

// ends counts the records of topics.
func (b *broker) ends(ctx context.Context, topics ...string) (n int64, err error) {
	offsets, err := b.admin.ListEndOffsets(ctx, topics...)
	offsets.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n, errors.Join(err, offsets.Error())
}

// lag counts the records that a service has not handled yet.
func (b *broker) lag(ctx context.Context, s *service) (int64, error) {
	n, err := b.ends(ctx, s.hears...)
	if err != nil {
		return 0, err
	}
	offsets, err := b.admin.FetchOffsets(ctx, s.name)
	if errors.Is(err, kerr.GroupIDNotFound) { // it has committed nothing yet
		return n, nil
	}
	offsets.Each(func(o kadm.OffsetResponse) { n -= max(0, o.At) })
	return n, errors.Join(err, offsets.Error())
}

// records is all records of a topic.
func (b *broker) records(t *testing.T, topic string) (rs []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	n, err := b.ends(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr()), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for int64(len(rs)) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, fetches.Records()...)
	}
	return rs
}
