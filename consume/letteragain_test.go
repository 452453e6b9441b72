package consume_test

import (
	"slices"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// A letter is sent back, and its message fails again.
func TestLetter_OfLetterWithoutOriginID_HasAnotherID(t *testing.T) {
	failed := func(hs []store.Header, d driver.Disposition) (headers []store.Header, id string) {
		m := &consume.Message{Key: "a", Body: []byte("body"), Origin: consume.Origin{Topic: "orders"}, Headers: hs}
		headers = driver.Letter(m, d, "group")
		id, _ = (&consume.Message{Headers: headers}).Header(driver.LetterID)
		return headers, id
	}
	d := driver.Disposition{Action: driver.DeadLetter}
	hs, first := failed(headers("color", "red"), d)
	redriven := append(slices.Clone(hs), headers(driver.RedriveHeader, "fixed")...)
	back, second := failed(redriven, d)
	if second == first {
		t.Error("the letter of the second failure has the id of the first")
	}
	if _, again := failed(redriven, d); again != second {
		t.Error("the letter of a redelivery has another id")
	}
	if _, third := failed(back, d); third == second || third == first {
		t.Error("the letter of the third failure has the id of an earlier one")
	}
}
