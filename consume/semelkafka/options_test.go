package semelkafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestNew_InvalidOptions_AreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		group  string
		topics []string
		o      Options
		want   string
	}{
		"nothing":            {group: "g", topics: []string{"t"}},
		"no group":           {topics: []string{"t"}, want: "group"},
		"no topic":           {group: "g", want: "topics"},
		"an empty topic":     {group: "g", topics: []string{"t", ""}, want: "topics"},
		"its own letters":    {group: "g", topics: []string{"dead-letters.g"}, want: "dead-letters.g"},
		"its own quarantine": {group: "g", topics: []string{"p"}, o: Options{Quarantine: "p"}, want: `"p" is consumed`},
		"one for both":       {group: "g", topics: []string{"t"}, o: Options{Quarantine: "x", DeadLetters: "x"}, want: "DeadLetters and Quarantine"},
		"a start":            {group: "g", topics: []string{"t"}, o: Options{Start: Refuse}, want: "Start: is refuse"},
		"a position":         {group: "g", topics: []string{"t"}, o: Options{OutOfRange: 9}, want: "OutOfRange: is Position(9)"},
		"outstanding":        {group: "g", topics: []string{"t"}, o: Options{Outstanding: -1}, want: "Outstanding"},
		"a rare commit":      {group: "g", topics: []string{"t"}, o: Options{CommitEvery: time.Hour}, want: "CommitEvery"},
		"a long hand-over":   {group: "g", topics: []string{"t"}, o: Options{HandOver: time.Hour}, want: "HandOver"},
		"a short wait":       {group: "g", topics: []string{"t"}, o: Options{PollWait: 1}, want: "PollWait"},
		"a horizon":          {group: "g", topics: []string{"t"}, o: Options{Horizon: -1}, want: "Horizon"},
		"the client's":       {group: "g", topics: []string{"t"}, o: Options{Client: []kgo.Opt{kgo.SeedBrokers()}}, want: "Client"},
		"marks":              {group: "g", topics: []string{"t"}, o: Options{Client: []kgo.Opt{kgo.AutoCommitMarks()}}, want: "Client"},
		"a transaction":      {group: "g", topics: []string{"t"}, o: Options{Client: []kgo.Opt{kgo.TransactionalID("x")}}, want: "Client"},
		"polls that block":   {group: "g", topics: []string{"t"}, o: Options{Client: []kgo.Opt{kgo.BlockRebalanceOnPoll()}}, want: "kgo.BlockRebalanceOnPoll"},
		"all that is wrong":  {o: Options{PollWait: 1}, want: "PollWait"},
	} {
		_, err := New(c.group, c.topics, &c.o)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error of %q", name, err, c.want)
		}
	}
	o := (*Options)(nil).withDefaults("g")
	if o.DeadLetters != "dead-letters.g" || o.Quarantine != "quarantine.g" || o.Start != Earliest || o.OutOfRange != Refuse || o.Outstanding != 1000 ||
		o.CommitEvery != time.Second || o.HandOver != 10*time.Second || o.PollWait != time.Second || o.OrderKey(nil, []byte("k")) != "k" || o.OrderKey(nil, nil) != "" {
		t.Errorf("the defaults are %+v", o)
	}
}

// A Source's own settings win: auto-commit would commit what is not done.
func TestOptions_Client_IsSetUp(t *testing.T) {
	s, err := New("g", []string{"t"}, &Options{Client: []kgo.Opt{kgo.ConsumerGroup("other"), kgo.AutoCommitInterval(time.Second), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.ClientID("mine")}})
	if err != nil {
		t.Fatal(err)
	}
	s.limits = map[string]int32{"quarantine.g": 7}
	cl, err := kgo.NewClient(append(s.options(), kgo.SeedBrokers("127.0.0.1:1"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"group", cl.OptValue(kgo.ConsumerGroup), "g"},
		{"auto-commit is off", cl.OptValue(kgo.DisableAutoCommit), true},
		{"acks", cl.OptValue(kgo.RequiredAcks), kgo.AllISRAcks()},
		{"client id", cl.OptValue(kgo.ClientID), "mine"},
		{"isolation: committed", fmt.Sprint(cl.OptValue(kgo.FetchIsolationLevel)), "1"},
		{"start", cl.OptValue(kgo.ConsumeStartOffset), kgo.NewOffset().AtStart()},
		{"out of range", cl.OptValue(kgo.ConsumeResetOffset), kgo.NoResetOffset()},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	limit := cl.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)
	if limit("quarantine.g") != 7 || limit("elsewhere") != defaultMessageBytes {
		t.Error("copies are not limited by their topic")
	}
}

func TestReadConfig_EachSetting_IsRead(t *testing.T) {
	config := func(values ...string) (cs []kmsg.DescribeConfigsResponseResourceConfig) {
		for i, name := range []string{"retention.ms", "cleanup.policy", "max.message.bytes"} {
			cs = append(cs, kmsg.DescribeConfigsResponseResourceConfig{Name: name, Value: &values[i]})
		}
		return cs
	}
	for _, c := range []struct {
		ms, policy string
		want       topicConfig
	}{
		{"60000", "delete", topicConfig{keeps: time.Minute, messageBytes: 100}},
		{"-1", "delete", topicConfig{keeps: driver.Forever, messageBytes: 100}},
		{"9223372036854775807", "delete", topicConfig{keeps: driver.Forever, messageBytes: 100}},
		{"60000", "compact", topicConfig{keeps: driver.Forever, messageBytes: 100, compacted: true}},
		{"60000", "compact,delete", topicConfig{keeps: time.Minute, messageBytes: 100, compacted: true}},
	} {
		got, err := readConfig(config(c.ms, c.policy, "100"))
		if err != nil || got != c.want {
			t.Errorf("retention.ms=%s, cleanup.policy=%s: %+v, %v, want %+v", c.ms, c.policy, got, err, c.want)
		}
	}
	for _, bad := range [][]string{{"", "delete", "1"}, {"1", "delete", "x"}} {
		if _, err := readConfig(config(bad...)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// forgetful is a ledger that keeps its records for an hour.
type forgetful struct{ scripted }

func (*forgetful) Retention() time.Duration { return time.Hour }

// A message older than the ledger's records would run again, so no option may
// claim a longer retention.
func TestServeBatches_RetentionAboveTheLedgers_IsRefused(t *testing.T) {
	s, err := New("g", []string{"t"}, &Options{Client: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.ServeBatches(t.Context(), &forgetful{}, &consume.Options{Retention: 2 * time.Hour, AllowShortRetention: true})
	if err == nil || !strings.Contains(err.Error(), "Retention: is 2h0m0s, but the ledger keeps outcomes for 1h0m0s") {
		t.Errorf("got %v", err)
	}
}

// As in consume.New: with a negative Retention no message would be too old, and with a
// negative Drain no batch would have time to end.
func TestServeBatches_NegativeDurations_AreRefused(t *testing.T) {
	s, err := New("g", []string{"t"}, &Options{Client: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")}})
	if err != nil {
		t.Fatal(err)
	}
	for field, o := range map[string]*consume.Options{"Retention": {Retention: -time.Hour, AllowShortRetention: true}, "Drain": {Drain: -1}} {
		if err := s.ServeBatches(t.Context(), &forgetful{}, o); err == nil || !strings.Contains(err.Error(), field+": is -") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
