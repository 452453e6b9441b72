package consume_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/internal/names"
	"github.com/semel-go/semel/store"
)

func headers(kv ...string) (hs []store.Header) {
	for i := 0; i < len(kv); i += 2 {
		hs = append(hs, store.Header{Name: kv[i], Value: kv[i+1]})
	}
	return hs
}

const failsWith = "error: " // an error that is not ErrNoKey and has this text

func TestKeySources_Messages_HaveTheirKeys(t *testing.T) {
	json := func(body string) *consume.Message { return &consume.Message{Body: []byte(body)} }
	event := func(body string) *consume.Message {
		return &consume.Message{Headers: headers("Content-Type", "application/cloudevents+json; charset=utf-8"), Body: []byte(body)}
	}
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name   string
		source consume.KeySource
		m      *consume.Message
		want   string // "": no key
	}{
		{"header", consume.FromHeader("K"), &consume.Message{Headers: headers("k", "v")}, "v"},
		{"header twice alike", consume.FromHeader("k"), &consume.Message{Headers: headers("k", "v", "K", "v")}, "v"},
		{"header twice", consume.FromHeader("k"), &consume.Message{Headers: headers("k", "v", "k", "w")}, failsWith + "twice"},
		{"no header", consume.FromHeader("k"), &consume.Message{Headers: headers("kk", "v")}, ""},
		{"empty header", consume.FromHeader("k"), &consume.Message{Headers: headers("k", "")}, ""},
		{"empty header beside a key", consume.FromHeader("k"), &consume.Message{Headers: headers("k", "", "K", "v", "k", "")}, "v"},
		{"broker id", consume.BrokerID(), &consume.Message{Origin: consume.Origin{ID: "t/0/7"}}, "semel-id:t/0/7"},
		{"no broker id", consume.BrokerID(), &consume.Message{}, ""},
		{"text field", consume.JSONField("id"), json(`{"id":"a\u0062"}`), "semel-field:ab"},
		{"nested number", consume.JSONField("order.id"), json(`{"order": {"id": -12.50 }}`), "semel-field:-12.50"},
		{"large number", consume.JSONField("id"), json(`{"id":12345678901234567890}`), "semel-field:12345678901234567890"},
		{"null field", consume.JSONField("id"), json(`{"id":null}`), ""},
		{"empty field", consume.JSONField("id"), json(`{"id": "" }`), ""},
		{"absent field", consume.JSONField("order.id"), json(`{"order":{}}`), ""},
		{"absent parent", consume.JSONField("order.id"), json(`{}`), ""},
		{"bool field", consume.JSONField("id"), json(`{"id":true}`), failsWith + "neither"},
		{"object field", consume.JSONField("id"), json(`{"id":{}}`), failsWith + "neither"},
		{"no object on the way", consume.JSONField("order.id"), json(`{"order":7}`), failsWith + "no such member"},
		{"not JSON", consume.JSONField("id"), json(`{"id":`), failsWith + "no such member"},
		{"long field", consume.JSONField("id"), json(`{"id":"` + long + `"}`), "semel-field:sha256:5720b0d2abf5c6a5a2c0e6d2d3bd2e1d"},
		{"event in headers of Kafka", consume.CloudEvent(), &consume.Message{Headers: headers("ce_id", "1", "ce_source", "/s")}, "semel-ce:/s 1"},
		{"event in headers of NATS", consume.CloudEvent(), &consume.Message{Headers: headers("Ce-Id", "1", "Ce-Source", "/s")}, "semel-ce:/s 1"},
		{"event in headers of AMQP", consume.CloudEvent(), &consume.Message{Headers: headers("cloudEvents:id", "1", "cloudEvents:source", "/s")}, "semel-ce:/s 1"},
		{"event in headers of JMS", consume.CloudEvent(), &consume.Message{Headers: headers("cloudEvents_id", "1", "cloudEvents_source", "/s")}, "semel-ce:/s 1"},
		{"event without id", consume.CloudEvent(), &consume.Message{Headers: headers("ce_source", "/s")}, failsWith + "id of 0"},
		{"event with nothing", consume.CloudEvent(), &consume.Message{Headers: headers("ce_specversion", "1.0")}, failsWith + "source of 0"},
		{"event in an envelope", consume.CloudEvent(), event(`{"specversion":"1.0","id":"1","source":"/s"}`), "semel-ce:/s 1"},
		{"envelope without source", consume.CloudEvent(), event(`{"id":"1"}`), failsWith + "source of 0"},
		{"envelope cut short", consume.CloudEvent(), event(`{"id":"1"`), failsWith + "envelope"},
		{"envelope with a number as id", consume.CloudEvent(), event(`{"id":1,"source":"/s"}`), failsWith + "envelope"},
		{"batch", consume.CloudEvent(), &consume.Message{Headers: headers("content-type", "application/cloudevents-batch+json")}, failsWith + "batch"},
		{"no event", consume.CloudEvent(), &consume.Message{Headers: headers("content-type", "application/json"), Body: []byte(`{"id":"1","source":"/s"}`)}, ""},
		{"first", consume.First(consume.FromHeader("k"), consume.BrokerID()), &consume.Message{Headers: headers("k", "v"), Origin: consume.Origin{ID: "i"}}, "v"},
		{"second", consume.First(consume.FromHeader("k"), consume.BrokerID()), &consume.Message{Origin: consume.Origin{ID: "i"}}, "semel-id:i"},
		{"an empty first", consume.First(consume.FromHeader("k"), consume.BrokerID()), &consume.Message{Headers: headers("k", ""), Origin: consume.Origin{ID: "i"}}, "semel-id:i"},
		{"an empty own first", consume.First(func(*consume.Message) (string, error) { return "", nil }, consume.BrokerID()), &consume.Message{Origin: consume.Origin{ID: "i"}}, "semel-id:i"},
		{"a bad first", consume.First(consume.CloudEvent(), consume.BrokerID()), &consume.Message{Headers: headers("ce_id", "1"), Origin: consume.Origin{ID: "i"}}, failsWith},
		{"none of the sources", consume.First(consume.FromHeader("k"), consume.BrokerID()), &consume.Message{}, ""},
		{"hash of nothing", consume.Hash("a", "b"), json(`{"c":1}`), ""},
		{"hash of empty fields", consume.Hash("a", "b"), json(`{"a":"","b":null,"c":1}`), ""},
	} {
		got, err := c.source(c.m)
		text, fails := strings.CutPrefix(c.want, failsWith)
		switch {
		case c.want == "":
			if !errors.Is(err, consume.ErrNoKey) {
				t.Errorf("%s: %q, %v, want ErrNoKey", c.name, got, err)
			}
		case fails:
			if err == nil || errors.Is(err, consume.ErrNoKey) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q, %v, want an error with %q", c.name, got, err, text)
			}
		case strings.HasPrefix(c.want, "semel-field:sha256:"):
			if !strings.HasPrefix(got, "semel-field:sha256:") || len(got) != len("semel-field:sha256:")+64 || err != nil {
				t.Errorf("%s: %q, %v, want a hash", c.name, got, err)
			}
		case got != c.want || err != nil:
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// Two messages that differ in what is hashed have two keys, and none else.
func TestHash_DifferentFields_Differ(t *testing.T) {
	hash := func(body string, paths ...string) string {
		key, err := consume.Hash(paths...)(&consume.Message{Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if hash(`{"a":1,"b":2,"c":3}`, "a", "b") != hash(`{"c":4, "b": 2, "a":1}`, "a", "b") {
		t.Error("a field that is not named changes the key")
	}
	seen := map[string]string{}
	for _, body := range []string{`{"a":1,"b":2}`, `{"a":12}`, `{"b":12}`, `{"a":"1","b":2}`, `{"a":1,"b":""}`, `{"a":1}`, `{"a":"","b":1}`} {
		key := hash(body, "a", "b")
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have one key", body, other)
		}
		seen[key] = body
	}
	if a := hash("a"); a == hash("b") || a != hash("a") {
		t.Error("the hash of the whole body is wrong")
	}
}

// Source and id must not run into each other.
func TestCloudEvent_TwoSources_HaveTwoKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range [][2]string{{"/a", "b c"}, {"/a b", "c"}, {"/ab", "c"}, {"/a", "bc"}} {
		key, err := consume.CloudEvent()(&consume.Message{Headers: headers("ce_source", c[0], "ce_id", c[1])})
		if err != nil || seen[key] {
			t.Errorf("%q: %q, %v; seen before: %v", c, key, err, seen[key])
		}
		seen[key] = true
	}
}

// encoding/json reads all that is no text as one and the same character: two
// identifiers that differ in it must not become one key.
func TestJSONField_InvalidTexts_HaveDifferentKeys(t *testing.T) {
	event := func(body string) *consume.Message {
		return &consume.Message{Headers: headers("content-type", "application/cloudevents+json"), Body: []byte(body)}
	}
	seen := map[string]string{}
	for _, id := range []string{"a", "\xff", "\xfe", `\ud800`, `\udfff`, "\ufffd", "\\ufffd", `\"a\"`} {
		for name, c := range map[string]struct {
			source consume.KeySource
			m      *consume.Message
		}{
			"field":  {consume.JSONField("id"), &consume.Message{Body: []byte(`{"id":"` + id + `"}`)}},
			"id":     {consume.CloudEvent(), event(`{"source":"/s","id":"` + id + `"}`)},
			"source": {consume.CloudEvent(), event(`{"id":"/s","source":"` + id + `"}`)},
		} {
			key, err := c.source(c.m)
			again, _ := c.source(c.m)
			if err != nil || key != again || seen[key] != "" {
				t.Errorf("%s %q: %q, then %q, %v, seen before with %q", name, id, key, again, err, seen[key])
			}
			seen[key] = name + " " + id
			if err := names.Check("key", key); err != nil {
				t.Errorf("%q is no key", key)
			}
		}
	}
	if key, err := consume.CloudEvent()(event(`{"source":"/s","id":"1","ID":"2"}`)); key != "semel-ce:/s 1" || err != nil {
		t.Errorf("an extension in capitals: %q, %v", key, err)
	}
}

func TestUnprotected_TwoDeliveries_HaveTwoKeys(t *testing.T) {
	a, _ := consume.Unprotected()(nil)
	b, _ := consume.Unprotected()(nil)
	if a == b {
		t.Errorf("two messages got the key %q", a)
	}
	if _, err := consume.Reject()(nil); !errors.Is(err, consume.ErrRejected) {
		t.Errorf("Reject: %v", err)
	}
}

func TestKeyed_Message_MakesItsCall(t *testing.T) {
	m := &consume.Message{Headers: headers("k", "v")}
	if call, err := consume.Keyed("op", consume.FromHeader("k"))(m); err != nil || call.Key != "v" {
		t.Errorf("key %q, %v", call.Key, err)
	}
	m = &consume.Message{}
	if _, err := consume.Keyed("op", consume.FromHeader("k"))(m); !errors.Is(err, consume.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
}

// A prefix must not make a key too long: its message would be a dead letter.
func TestJSONField_LongText_MakesAKey(t *testing.T) {
	for n := 240; n < 270; n++ {
		key, err := consume.JSONField("id")(&consume.Message{Body: []byte(`{"id":"` + strings.Repeat("x", n) + `"}`)})
		if err != nil || len(key) > 255 {
			t.Errorf("a field of %d bytes makes a key of %d, error %v", n, len(key), err)
		}
	}
}

// A mistake that concerns every message is the program's: New reports it,
// instead of one dead letter per message.
func TestNew_InvalidGroup_IsRefused(t *testing.T) {
	own := func(op string) consume.CallFunc {
		return func(m *consume.Message) (semel.Call, error) {
			key, ok := m.Header(consume.KeyHeader)
			if !ok {
				return semel.Call{Operation: op, Tenant: semel.Shared, Key: "", Payload: semel.NoPayload()}, consume.ErrNoKey
			}
			return semel.Call{Operation: op, Tenant: "ann", Key: key, Payload: semel.NoPayload()}, nil
		}
	}
	header := consume.FromHeader(consume.KeyHeader)
	for name, c := range map[string]struct {
		call consume.CallFunc
		want []string // empty: it is fine
	}{
		"empty":                    {consume.Keyed("", header), []string{"operation", "empty", "1 to 255"}},
		"too long":                 {consume.Keyed(strings.Repeat("g", 256), header), []string{"operation", "256", "255"}},
		"not UTF-8":                {consume.Keyed("g\xff", header), []string{"operation", "UTF-8"}},
		"a control character":      {consume.Keyed("a\nb", header), []string{"operation", "0x0a"}},
		"a '#'":                    {consume.Keyed("a#b", header), []string{"operation", "'#'"}},
		"whatever the last source": {consume.Keyed("a#b", header, consume.Unprotected()), []string{"operation", "'#'"}},
		"of a CallFunc of its own": {own("a#b"), []string{"operation", "'#'"}},
		"no source":                {consume.Keyed("g", nil), []string{"source", "nil"}},
		"no second source":         {consume.Keyed("g", header, nil), []string{"source", "nil"}},
		"a header without a name":  {consume.Keyed("g", consume.FromHeader("")), []string{"FromHeader", "empty"}},

		"good":                 {consume.Keyed("g", header), nil},
		"good, and rejects":    {consume.Keyed("g", header, consume.Reject()), nil},
		"good, of its own":     {own("g"), nil},
		"it has no call":       {func(*consume.Message) (semel.Call, error) { return semel.Call{}, errPlain }, nil},
		"it panics":            {func(m *consume.Message) (semel.Call, error) { return semel.Call{}, errors.New(m.Headers[0].Name) }, nil},
		"it leaves by Goexit":  {func(*consume.Message) (semel.Call, error) { runtime.Goexit(); return semel.Call{}, nil }, nil},
		"it names the message": {func(m *consume.Message) (semel.Call, error) { return own(m.Origin.Topic)(m) }, nil},
	} {
		_, err := consume.New(newGuard(t, nil, nil), c.call, done, nil)
		if (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
}

// Two kinds of events may have the same member, or the same body.
func TestKey_SameBodyOnTwoTopics_DoesNotCollide(t *testing.T) {
	at := func(topic, address string, hs ...store.Header) *consume.Message {
		return &consume.Message{Origin: consume.Origin{Topic: topic, Address: address}, Headers: hs, Body: []byte(`{"id":7}`)}
	}
	pairs := map[string][2]*consume.Message{
		"topics":       {at("orders.created", ""), at("orders.cancelled", "")},
		"routing keys": {at("q", "x/created"), at("q", "x/cancelled")},
	}
	for name, pair := range pairs {
		for _, source := range []consume.KeySource{consume.JSONField("id"), consume.Hash("id"), consume.Hash()} {
			a, errA := source(pair[0])
			b, errB := source(pair[1])
			if a == b || errors.Join(errA, errB) != nil {
				t.Errorf("%s: the keys %q and %q, errors %v, %v", name, a, b, errA, errB)
			}
		}
		c := newConsumer(t, newGuard(t, nil, nil), done, consume.Options{})
		pair[0].Headers, pair[1].Headers = headers(consume.KeyHeader, "k"), headers(consume.KeyHeader, "k")
		if d := c.Handle(t.Context(), pair[0]); d.Reason != driver.ReasonDone {
			t.Errorf("%s: the first: %q: %v", name, d.Reason, d.Err)
		}
		if d := c.Handle(t.Context(), pair[1]); d.Reason != driver.ReasonMismatch {
			t.Errorf("%s: the same key for the other: %q: %v", name, d.Reason, d.Err)
		}
	}
	m := at("orders.created", "")
	back := at("orders.redriven", "", driver.Letter(m, driver.Disposition{Action: driver.DeadLetter}, "g")...)
	a, _ := consume.JSONField("id")(m)
	if b, err := consume.JSONField("id")(back); a != b || err != nil {
		t.Errorf("a copy on its way back from the dead letters has key %q, want %q; error %v", b, a, err)
	}
}

func TestFromHeader_KeyOfAnotherSource_IsRefused(t *testing.T) {
	other, err := consume.JSONField("id")(&consume.Message{Body: []byte(`{"id":4711}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{other, "semel-id:1", "semel-starts:1"} {
		if got, err := consume.FromHeader("k")(&consume.Message{Headers: headers("k", key)}); err == nil || errors.Is(err, consume.ErrNoKey) {
			t.Errorf("a header takes the key %q, error %v", got, err)
		}
	}
}
