package semelamqp

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume/driver"
)

const someURL = "amqp://user:secret@127.0.0.1:5672/"

func TestNew_InvalidOptions_AreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		url, queue string
		o          Options
		want       string
	}{
		"nothing":                {},
		"no url":                 {url: "localhost", want: "url: "},
		"a password in the text": {url: "amqp://user:sec%zz@h/", want: "url: "},
		"no queue":               {queue: "-", want: "queue: is empty"},
		"a long queue":           {queue: strings.Repeat("q", 250), want: "at most 255"},
		"a long name":            {o: Options{Quarantine: strings.Repeat("q", 256)}, want: "Quarantine: gives a queue a name of 256 bytes"},
		"letters come again":     {o: Options{DeadLetters: "orders"}, want: "would be consumed"},
		"a declare":              {o: Options{Declare: 9}, want: "Declare: is 9"},
		"a kind":                 {o: Options{Kind: "stream"}, want: `Kind: is "stream"`},
		"a limit, not made here": {o: Options{DeliveryLimit: 3}, want: "DeliveryLimit"},
		"a limit, classic":       {o: Options{DeliveryLimit: 3, Kind: Classic, Declare: DeclareAll}, want: "DeliveryLimit"},
		"a limit":                {o: Options{DeliveryLimit: 3, Declare: DeclareAll}},
		"single":                 {o: Options{SingleActive: true}, want: "SingleActive"},
		"a horizon":              {o: Options{Horizon: -time.Second}, want: "Horizon: is -1s"},
		"a prefetch":             {o: Options{Prefetch: 65536}, want: "Prefetch: is 65536"},
		"recovery":               {o: Options{Config: amqp.Config{Recovery: &amqp.Recovery{}}}, want: "Recovery"},
	} {
		if c.url == "" {
			c.url = someURL
		}
		switch c.queue {
		case "":
			c.queue = "orders"
		case "-":
			c.queue = ""
		}
		_, err := New(c.url, c.queue, &c.o)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error of %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "sec%zz") {
			t.Errorf("%s: the error holds the password: %v", name, err)
		}
	}
	s, err := New(someURL, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := s.opt; o.DeadLetters != "orders.dead-letters" || o.Quarantine != "orders.quarantine" || o.Kind != Quorum || o.Horizon != driver.Forever || o.Declare != DeclareCopies {
		t.Errorf("the defaults are %+v", o)
	}
}

// The first Next of a Serve asks for all messages, a Next on a later link for
// the rest; the prefetch must not follow that. It at least doubles if it grows,
// because each growth takes a new consumer.
func TestPrefetch_IsAtLeastTheLargestLimit(t *testing.T) {
	s, err := New(someURL, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{}
	for _, c := range [][3]int{{64, 0, 64}, {3, 61, 64}, {3, 0, 64}, {1, 64, 128}, {100, 0, 128}, {100, 90, 256}, {1 << 20, 0, 65535}} {
		l.out.Store(int64(c[1]))
		if got := s.prefetch(l, c[0]); got != c[2] {
			t.Errorf("%d, with %d in work: %d, want %d", c[0], c[1], got, c[2])
		}
	}
	s.most.Store(0)
	s.opt.OrderKey = ByRoutingKey
	for _, c := range [][3]int{{64, 0, 1088}, {64, 1080, 1088}, {1, 64, 1088}} { // a new consumer would change the order
		l.out.Store(int64(c[1]))
		if got := s.prefetch(l, c[0]); got != c[2] {
			t.Errorf("with an OrderKey %d, with %d in work: %d, want %d", c[0], c[1], got, c[2])
		}
	}
	s.opt.Prefetch = 7
	if got := s.prefetch(l, 64); got != 7 {
		t.Errorf("%d, want the option's 7", got)
	}
}
