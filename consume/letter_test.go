package consume_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// letterOf is the copy that a message leaves when its handler fails so.
func letterOf(t *testing.T, m *consume.Message, err error) (letter consume.Message) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSource(m)
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error { return err }, consume.Options{MaxAttempts: 1}), s)
		synctest.Wait()
		if len(s.letters) != 1 {
			t.Fatalf("%d letters", len(s.letters))
		}
		letter = s.letters[0]
		r.end()
	})
	return letter
}

func TestLetter_HeadersTellOriginAndReason(t *testing.T) {
	published := time.Date(2000, 1, 1, 0, 0, 0, 1000, time.UTC) // when a bubble's clock starts
	m := keyed("k")
	m.Origin = consume.Origin{Topic: "orders", Partition: 3, Offset: 42, ID: "orders/3/42"}
	m.Published, m.Deliveries = published, 2
	m.Headers = append(m.Headers, headers("trace", "t", "Semel-Letter-Reason", "an old one", "semel-caused-by", "c")...)
	before := slices.Clone(m.Headers)
	l := letterOf(t, m, &semel.Failure{Code: "declined", Message: "no"})
	var got []string
	for _, h := range l.Headers {
		got = append(got, h.Name+"="+h.Value)
	}
	id, _ := l.Header(driver.LetterID)
	want := []string{
		"idempotency-key=k", "trace=t", "semel-caused-by=c",
		"semel-letter-reason=failed", "semel-letter-code=declined", "semel-letter-error=no", "semel-letter-attempts=1", "semel-letter-deliveries=2",
		"semel-letter-group=test", "semel-letter-fence=946684800000000", "semel-letter-key=k", "semel-letter-topic=orders", "semel-letter-address=orders", "semel-letter-partition=3", "semel-letter-offset=42",
		"semel-letter-origin-id=orders/3/42", "semel-letter-published=2000-01-01T00:00:00.000001Z", "semel-letter-id=" + id,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || id == "" {
		t.Errorf("the letter has\n%v\nwant\n%v", got, want)
	}
	if !slices.Equal(m.Headers, before) {
		t.Errorf("the message was changed: %v", m.Headers)
	}
}

func TestLetter_OddErrorText_BecomesOneValidLine(t *testing.T) {
	l := letterOf(t, keyed("k"), fmt.Errorf("a\nb\r\x00c\xff %s", strings.Repeat("é", 5000)))
	text, _ := l.Header(driver.LetterError)
	if len(text) > 1000 || strings.ContainsAny(text, "\n\r\x00") || !utf8.ValidString(text) || !strings.Contains(text, "a b  c") {
		t.Errorf("the error is %q", text)
	}
}

// An ack may be lost after the letter was sent, and then it is sent again.
func TestLetter_SentAgain_HasTheSameID(t *testing.T) {
	id := func(change func(m *consume.Message)) string {
		m := keyed("k")
		m.Origin = consume.Origin{Topic: "orders", ID: "orders/3/42"}
		change(m)
		l := letterOf(t, m, errPlain)
		id, _ := l.Header(driver.LetterID)
		return id
	}
	same := id(func(*consume.Message) {})
	if again := id(func(m *consume.Message) { m.Deliveries = 7 }); again != same {
		t.Error("a redelivery has another id")
	}
	seen := map[string]string{same: "the first"}
	for name, change := range map[string]func(m *consume.Message){
		"offset": func(m *consume.Message) { m.Origin.ID = "orders/3/43" },
		"topic":  func(m *consume.Message) { m.Origin.Topic = "bills" },
		"no id":  func(m *consume.Message) { m.Origin.ID = "" },
		"no id, another body": func(m *consume.Message) {
			m.Origin.ID = ""
			m.Body = []byte("c")
		},
	} {
		got := id(change)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[got] = name
	}
}

func TestLetter_NoOriginID_DiffersByKeyAndBody(t *testing.T) {
	id := func(key, body string) string {
		hs := driver.Letter(&consume.Message{Key: key, Body: []byte(body)}, driver.Disposition{Action: driver.DeadLetter}, "group")
		v, _ := (&consume.Message{Headers: hs}).Header(driver.LetterID)
		return v
	}
	if a := id("a", "body"); a == id("b", "body") || a == id("a", "another") {
		t.Error("the letters of two messages have one id")
	}
}
