package event

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// message makes a message of header pairs and a body.
func message(body string, headers ...string) *consume.Message {
	m := &consume.Message{Body: []byte(body), Key: "k1", Origin: consume.Origin{Topic: "orders"}}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, store.Header{Name: headers[i], Value: headers[i+1]})
	}
	return m
}

var defaults = Defaults{Source: "kafka:", Type: "semel.message"}

// sent is the request of a message: its headers in lower case, and its body.
func sent(t *testing.T, m *consume.Message, mode Mode) (map[string]string, string) {
	t.Helper()
	e, err := Read(m, defaults)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	body, err := e.Write(h, mode)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, values := range h {
		got[strings.ToLower(name)] = strings.Join(values, "|")
	}
	return got, string(body)
}

const structured = `{"specversion":"1.0","id":"7","source":"/shop","type":"order.placed","time":"2026-11-25T10:00:00Z","n":5,"ok":true,"none":null,"datacontenttype":"application/json","data":{"a":1}}`

func TestWrite_Binary_AttributesAreHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		m    *consume.Message
		want map[string]string
		body string
	}{
		"no event, JSON": {message(`{"a":1}`),
			map[string]string{"ce-specversion": "1.0", "ce-id": "k1", "ce-source": "kafka:orders", "ce-type": "semel.message", "content-type": "application/json"}, `{"a":1}`},
		"no event, bytes": {message("\x00\x01"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "k1", "ce-source": "kafka:orders", "ce-type": "semel.message", "content-type": "application/octet-stream"}, "\x00\x01"},
		"no event, empty": {message(""),
			map[string]string{"ce-specversion": "1.0", "ce-id": "k1", "ce-source": "kafka:orders", "ce-type": "semel.message"}, ""},
		"no event, its own type": {message("<a/>", "content-type", "text/xml", "amqp-type", "order", "content-encoding", "gzip"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "k1", "ce-source": "kafka:orders", "ce-type": "order", "content-type": "text/xml", "content-encoding": "gzip"}, "<a/>"},
		"of Kafka": {message("x", "ce_specversion", "1.0", "ce_id", "a%41 ü", "ce_source", "/s", "ce_type", "t", "ce_region", "eu", "content-type", "text/plain", "other", "o"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "a%2541%20%C3%BC", "ce-source": "/s", "ce-type": "t", "ce-region": "eu", "content-type": "text/plain"}, "x"},
		"of NATS": {message("x", "ce-specversion", "1.0", "ce-id", "a%20b%zz", "ce-source", "/s", "ce-type", "t"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "a%20b%25zz", "ce-source": "/s", "ce-type": "t"}, "x"},
		"of AMQP": {message("x", "cloudEvents:specversion", "1.0", "cloudEvents_id", "1", "cloudEvents:source", "/s", "cloudEvents:type", "t", "amqp-type", "not this"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}, "x"},
		"by two rules": {message("x", "ce-id", "2", "ce_specversion", "1.0", "ce_id", "1", "ce_source", "/s", "ce_type", "t"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}, "x"},
		"structured": {message(structured, "content-type", "application/cloudevents+json; charset=utf-8"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/shop", "ce-type": "order.placed", "ce-time": "2026-11-25T10:00:00Z", "ce-n": "5", "ce-ok": "true", "content-type": "application/json"}, `{"a":1}`},
		"structured, base64": {message(`{"specversion":"1.0","id":"7","source":"/s","type":"t","data_base64":"AAE="}`, "content-type", "application/cloudevents+json"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/s", "ce-type": "t"}, "\x00\x01"},
		"structured, text": {message(`{"specversion":"1.0","id":"7","source":"/s","type":"t","datacontenttype":"text/plain","data":"hi"}`, "content-type", "application/cloudevents+json"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/s", "ce-type": "t", "content-type": "text/plain"}, "hi"},
		"structured, JSON text": {message(`{"specversion":"1.0","id":"7","source":"/s","type":"t","data":"hi"}`, "content-type", "application/cloudevents+json"),
			map[string]string{"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/s", "ce-type": "t", "content-type": "application/json"}, `"hi"`},
		"another format": {message("avro", "content-type", "application/cloudevents+avro"), map[string]string{"content-type": "application/cloudevents+avro"}, "avro"},
	} {
		if got, body := sent(t, c.m, Binary); !maps.Equal(got, c.want) || body != c.body {
			t.Errorf("%s:\n got %v %q\nwant %v %q", name, got, body, c.want, c.body)
		}
	}
}

func TestWrite_Structured_BodyIsTheEvent(t *testing.T) {
	for name, c := range map[string]struct {
		m    *consume.Message
		want string
	}{
		"no event, JSON":     {message(`{"a":"<&>"}`), `{"specversion":"1.0","id":"k1","source":"kafka:orders","type":"semel.message","datacontenttype":"application/json","data":{"a":"<&>"}}`},
		"no event, bytes":    {message("\x00\x01"), `{"specversion":"1.0","id":"k1","source":"kafka:orders","type":"semel.message","datacontenttype":"application/octet-stream","data_base64":"AAE="}`},
		"no event, empty":    {message(""), `{"specversion":"1.0","id":"k1","source":"kafka:orders","type":"semel.message"}`},
		"text":               {message("hi", "content-type", "text/plain"), `{"specversion":"1.0","id":"k1","source":"kafka:orders","type":"semel.message","datacontenttype":"text/plain","data":"hi"}`},
		"of Kafka":           {message(`{}`, "ce_specversion", "1.0", "ce_id", "ü", "ce_source", "/s", "ce_type", "t", "content-type", "application/vnd.x+json"), `{"specversion":"1.0","id":"ü","source":"/s","type":"t","datacontenttype":"application/vnd.x+json","data":{}}`},
		"JSON that is none":  {message(`{`, "content-type", "application/json"), `{"specversion":"1.0","id":"k1","source":"kafka:orders","type":"semel.message","datacontenttype":"application/json","data_base64":"ew=="}`},
		"structured already": {message(structured, "content-type", "application/cloudevents+json"), structured},
	} {
		got, body := sent(t, c.m, Structured)
		var have, want any
		if err := json.Unmarshal([]byte(body), &have); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(have, want) || !strings.HasPrefix(got["content-type"], "application/cloudevents+json") || len(got) != 1 {
			t.Errorf("%s:\n got %s %v\nwant %s", name, body, got, c.want)
		}
	}
	if _, body := sent(t, message(structured, "content-type", "application/cloudevents+json"), Structured); body != structured {
		t.Errorf("an event in structured mode was changed: %s", body)
	}
	e, err := Read(message("zip", "content-encoding", "gzip"), defaults)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Write(http.Header{}, Structured); err == nil || !strings.Contains(err.Error(), `encoding "gzip"`) {
		t.Errorf("data with an encoding: %v", err)
	}
}

// The order key is an attribute of a message that is no CloudEvent.
func TestRead_OrderKey_IsPartitionKey(t *testing.T) {
	m := message("x")
	m.OrderKey = "ann"
	if got, _ := sent(t, m, Binary); got["ce-partitionkey"] != "ann" {
		t.Errorf("got %v", got)
	}
	for _, order := range []string{"\xff", "\x00\x01ann", strings.Repeat("a", 256)} {
		m.OrderKey = order
		if got, _ := sent(t, m, Binary); got["ce-partitionkey"] != "" {
			t.Errorf("%q: got %v", order, got)
		}
	}
}

// A message that comes back from the dead letters makes the event that it made before.
func TestRead_Redriven_SourceIsFirstAddress(t *testing.T) {
	m := message("x")
	m.Origin.Topic = "orders"
	first, _ := sent(t, m, Binary)
	again := message("x", driver.LetterAddress, "orders")
	again.Origin.Topic = "orders.retry"
	if got, _ := sent(t, again, Binary); got["ce-source"] != first["ce-source"] || !strings.HasSuffix(got["ce-source"], "orders") {
		t.Errorf("source %q, want %q", got["ce-source"], first["ce-source"])
	}
}

// AMQP's property type is a text by its specification only.
func TestRead_TypeIsNoText_HasDefault(t *testing.T) {
	for _, kind := range []string{"\xff", "a\nb"} {
		if got, _ := sent(t, message("x", "amqp-type", kind), Binary); got["ce-type"] != "semel.message" {
			t.Errorf("%q: got %v", kind, got)
		}
	}
}

func TestRead_Malformed_ErrorSaysWhy(t *testing.T) {
	json := []string{"content-type", "application/cloudevents+json"}
	for want, m := range map[string]*consume.Message{
		"no JSON object":             message("{", json...),
		"has no specversion":         message("null", json...),
		"the CloudEvent has no id":   message(`{"specversion":"1.0","source":"/s","type":"t"}`, json...),
		"has no type":                message("x", "ce_specversion", "1.0", "ce_id", "1", "ce_source", "/s"),
		"has no specversion; send":   message("x", "ce_id", "1", "ce_source", "/s", "ce_type", "t"),
		`specversion "0.3"`:          message(`{"specversion":"0.3","id":"1","source":"/s","type":"t"}`, json...),
		"both data and data_base64":  message(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1,"data_base64":""}`, json...),
		"is no base64":               message(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"?"}`, json...),
		`the member "Bad"`:           message(`{"specversion":"1.0","id":"1","source":"/s","type":"t","Bad":"x"}`, json...),
		`the member "x" of`:          message(`{"specversion":"1.0","id":"1","source":"/s","type":"t","x":{}}`, json...),
		"batch of CloudEvents":       message("[]", "content-type", "application/cloudevents-batch+json"),
		"header content-type has a":  message("x", "content-type", "a\nb"),
		"attribute id has a":         message("x", "ce_specversion", "1.0", "ce_id", "a\nb", "ce_source", "/s", "ce_type", "t"),
		"attribute datacontenttype":  message(`{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"text/plain\n"}`, json...),
		"attribute source has a cha": message("x", "ce_specversion", "1.0", "ce_id", "1", "ce_source", "\xff", "ce_type", "t"),
	} {
		if _, err := Read(m, defaults); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func FuzzRead_AnyMessage_HeadersAreValid(f *testing.F) {
	f.Add("{}", "content-type", "application/cloudevents+json")
	f.Add("x", "ce_id", "\xff%")
	f.Add(`{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"text/plain\n"}`, "content-type", "application/cloudevents+json")
	f.Fuzz(func(t *testing.T, body, name, value string) {
		e, err := Read(message(body, name, value), defaults)
		if err != nil {
			return
		}
		for _, mode := range []Mode{Binary, Structured} {
			h := http.Header{}
			if _, err := e.Write(h, mode); err != nil {
				continue
			}
			for _, values := range h {
				if !IsHeaderValue(values[0]) {
					t.Errorf("the header %q", values)
				}
			}
		}
	})
}
