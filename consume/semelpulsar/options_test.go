package semelpulsar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// wants checks that an error has all these parts.
func wants(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v; want %q in it", err, part)
		}
	}
}

func TestNew_InvalidOptions_NamesAll(t *testing.T) {
	t.Parallel()
	_, err := New(nil, "orders", "", &Options{
		Type: 9, ReceiverQueue: 20_000, Horizon: -time.Second, DeadLetters: "orders", Quarantine: "persistent://public/default/orders",
	})
	wants(t, err, "client: must not be nil", "subscription: must not be empty", "Type: is 9", "ReceiverQueue: is 20000; it must be from 1 to 10000",
		"Horizon: is -1s", "DeadLetters: is", "Quarantine: is", "the topic that is consumed", `are both "persistent://public/default/orders"`)
}

func TestNew_Topic_IsChecked(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"":                           "topic: must not be empty",
		"non-persistent://a/b/c":     "Pulsar keeps no message of a non-persistent topic",
		"a/b":                        `topic: is "a/b"; it must be a name such as`,
		"persistent://a//c":          "it must be a name such as",
		"orders":                     "",
		"tenant/space/orders":        "",
		"persistent://a/b/c":         "",
		"persistent://a/cluster/b/c": "",
	} {
		_, err := New(&fakeClient{}, topic, "billing", nil)
		switch {
		case want == "" && err != nil:
			t.Errorf("topic %q: %v", topic, err)
		case want != "":
			wants(t, err, want)
		}
	}
}

func TestNew_Defaults_FollowPulsar(t *testing.T) {
	t.Parallel()
	s, err := New(&fakeClient{}, "orders-partition-2", "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	const base = "persistent://public/default/orders"
	if s.topic != base || s.subscribed != base+"-partition-2" || s.opt.DeadLetters != base+"-billing-DLQ" || s.opt.Quarantine != base+"-billing-quarantine" || s.opt.ReceiverQueue != 100 {
		t.Errorf("the source is %+v", s)
	}
}

func TestInfo_BrokerRefuses_NamesNextStep(t *testing.T) {
	t.Parallel()
	const base = "persistent://shop/eu/orders"
	for text, want := range map[string]string{
		"server error: ConsumerBusy: Exclusive consumer is already connected": "give all members the same Options.Type",
		"server error: TopicNotFound: Topic not found":                        "pulsar-admin topics create " + base,
		"server error: AuthorizationError: Client is not authorized":          "pulsar-admin namespaces grant-permission shop/eu --role ROLE",
		"server error: AuthenticationError: no":                               "refuses the credentials",
		"server error: MetadataError: Namespace not found":                    "pulsar-admin namespaces create shop/eu",
		"server error: UnknownError: x":                                       "Pulsar refuses it",
		"dial tcp 127.0.0.1:1: connection refused":                            "check the client's URL",
	} {
		s, err := New(&fakeClient{refuse: map[string]error{base: errors.New(text)}}, base, "billing", &Options{Type: pulsar.Shared})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Info(t.Context())
		wants(t, err, want, text, base)
	}
}

// One that is missing does not hide the others.
func TestInfo_SeveralTopicsRefused_NamesAll(t *testing.T) {
	t.Parallel()
	refused := errors.New("server error: TopicNotFound: no")
	const base = "persistent://public/default/orders"
	client := &fakeClient{refuse: map[string]error{base: refused, base + "-billing-DLQ": refused, base + "-billing-quarantine": refused}}
	s, err := New(client, "orders", "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Info(t.Context())
	wants(t, err, `"`+base+`": does not exist`, base+"-billing-DLQ", base+"-billing-quarantine")
	if _, err := s.Next(t.Context(), 1); err == nil {
		t.Error("Next without a subscription returns no error")
	}
}

func TestReconnects_Pause_GrowsToFiveSeconds(t *testing.T) {
	t.Parallel()
	r := newReconnects()
	if d := r.Next(); d > firstReconnect || d < firstReconnect*3/4 {
		t.Errorf("the first pause is %v", d)
	}
	for range 20 {
		if d := r.Next(); d > longestReconnect {
			t.Fatalf("a pause is %v", d)
		}
	}
	if !r.IsMaxBackoffReached() {
		t.Error("the longest pause is not reached")
	}
	r.Reset()
	if d := r.Next(); d > firstReconnect {
		t.Errorf("after a reset the pause is %v", d)
	}
}
