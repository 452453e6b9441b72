package orders

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// books are the books of four orders: a is booked, b is refused by the bank, c by the
// stock, and d by the shop.
type books struct {
	plan    []Order
	answers map[string]Answer
	Books
}

func (b *books) add(order string, step Step, key, undoes string, cents int64) {
	m := Movement{Key: key, Undoes: undoes, Step: step, Order: order, Amount: amount(step, cents)}
	b.Movements = append(b.Movements, m)
	switch account(step) {
	case bank:
		b.Bank += m.Amount
	case stock:
		b.Stock += m.Amount
	}
}

// remove deletes movements and undoes their changes.
func (b *books) remove(keys ...string) {
	b.Movements = slices.DeleteFunc(b.Movements, func(m Movement) bool {
		if !slices.Contains(keys, m.Key) {
			return false
		}
		switch account(m.Step) {
		case bank:
			b.Bank -= m.Amount
		case stock:
			b.Stock -= m.Amount
		}
		return true
	})
}

func goodBooks() *books {
	b := &books{
		plan:    []Order{{ID: "a", Cents: 100}, {ID: "b", Cents: 200, Refuser: Pay}, {ID: "c", Cents: 300, Refuser: Hold}, {ID: "d", Cents: 400, Refuser: Book}},
		answers: map[string]Answer{"a": {End: Booked}, "b": {End: Undone}, "c": {End: Undone}, "d": {End: Undone}},
		Books:   Books{Stock: pieces},
	}
	b.add("a", Pay, "a1", "", 100)
	b.add("a", Hold, "a2", "", 100)
	b.add("a", Book, "a3", "", 100)
	b.add("c", Pay, "c1", "", 300)
	b.add("c", Refund, "c2", "c1", 300)
	b.add("d", Pay, "d1", "", 400)
	b.add("d", Hold, "d2", "", 400)
	b.add("d", Release, "d3", "d2", 400)
	b.add("d", Refund, "d4", "d1", 400)
	return b
}

func TestAudit_GoodBooks_NothingWrong(t *testing.T) {
	b := goodBooks()
	f := Audit(b.plan, b.answers, &b.Books)
	if f.Booked != 1 || f.Refused != 1 || f.Undone != 2 || f.Wrong != 0 || len(f.Counts) != 0 || len(f.Sentences()) != 0 {
		t.Errorf("got %+v, %q", f, f.Sentences())
	}
}

// Each mistake is found, and no other beside it but those that follow from it.
func TestAudit_BadBooks_EachMistakeFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*books)
		want   map[Mistake]int
		money  int64
		pieces int64
	}{
		"a charge too much":             {func(b *books) { b.add("a", Pay, "a4", "", 100) }, map[Mistake]int{PaidTwice: 1}, 100, 0},
		"a charge of a refused order":   {func(b *books) { b.add("b", Pay, "b1", "", 200) }, map[Mistake]int{PaidNotBooked: 1}, 200, 0},
		"a refund is missing":           {func(b *books) { b.remove("d4") }, map[Mistake]int{PaidNotBooked: 1}, 400, 0},
		"a charge is missing":           {func(b *books) { b.remove("a1") }, map[Mistake]int{BookedNotPaid: 1}, -100, 0},
		"a booked order was refunded":   {func(b *books) { b.add("a", Refund, "a4", "a1", 100) }, map[Mistake]int{BookedNotPaid: 1, WrongSequence: 1}, -100, 0},
		"a piece too much":              {func(b *books) { b.add("a", Hold, "a4", "", 100) }, map[Mistake]int{HeldTwice: 1}, 0, 1},
		"a release is missing":          {func(b *books) { b.remove("d3") }, map[Mistake]int{HeldNotBooked: 1, WrongSequence: 1}, 0, 1},
		"a hold is missing":             {func(b *books) { b.remove("a2") }, map[Mistake]int{BookedNotHeld: 1}, 0, -1},
		"booked twice":                  {func(b *books) { b.add("a", Book, "a4", "", 100) }, map[Mistake]int{BookedTwice: 1}, 0, 0},
		"not ended":                     {func(b *books) { b.answers["a"] = Answer{PID: 7} }, map[Mistake]int{NotEnded: 1}, 0, 0},
		"never answered":                {func(b *books) { delete(b.answers, "b") }, map[Mistake]int{NotEnded: 1}, 0, 0},
		"refunded twice":                {func(b *books) { b.add("c", Refund, "c3", "c1", 300) }, map[Mistake]int{Overdone: 1}, -300, 0},
		"a release of no hold":          {func(b *books) { b.add("c", Release, "c3", "c9", 300) }, map[Mistake]int{Overdone: 1}, 0, -1},
		"a refund that names a hold":    {func(b *books) { b.Movements[8].Undoes = "d2" }, map[Mistake]int{Overdone: 1}, 0, 0},
		"paid and refunded needlessly":  {func(b *books) { b.add("b", Pay, "b1", "", 200); b.add("b", Refund, "b2", "b1", 200) }, map[Mistake]int{Repeated: 1}, 0, 0},
		"made and undone twice":         {func(b *books) { b.add("c", Pay, "c3", "", 300); b.add("c", Refund, "c4", "c3", 300) }, map[Mistake]int{Repeated: 1}, 0, 0},
		"refunded before the release":   {func(b *books) { b.Movements[7], b.Movements[8] = b.Movements[8], b.Movements[7] }, map[Mistake]int{WrongSequence: 1}, 0, 0},
		"a wrong amount":                {func(b *books) { b.Movements[0].Amount++; b.Bank++ }, map[Mistake]int{WrongAmount: 1}, 1, 0},
		"an unknown step":               {func(b *books) { b.Movements[2].Step = "bill" }, map[Mistake]int{WrongAmount: 1, PaidNotBooked: 1, HeldNotBooked: 1, WrongAnswer: 1, WrongEnd: 1}, 100, 1},
		"undone for no reason":          {func(b *books) { b.remove("a1", "a2", "a3"); b.answers["a"] = Answer{End: Undone} }, map[Mistake]int{WrongEnd: 1}, 0, 0},
		"booked although refused":       {func(b *books) { b.plan[0].Refuser = Book }, map[Mistake]int{WrongEnd: 1}, 0, 0},
		"reported booked, but it isn't": {func(b *books) { b.answers["d"] = Answer{End: Booked} }, map[Mistake]int{WrongAnswer: 1}, 0, 0},
		"reported undone, but booked":   {func(b *books) { b.answers["a"] = Answer{End: Undone} }, map[Mistake]int{WrongAnswer: 1}, 0, 0},
	} {
		b := goodBooks()
		c.change(b)
		f := Audit(b.plan, b.answers, &b.Books)
		if !maps.Equal(f.Counts, c.want) || f.Wrong != 1 || f.Money != c.money || f.Pieces != c.pieces || f.Stray != 0 || f.Unbalanced != 0 {
			t.Errorf("%s: got %+v", name, f)
		}
		if f.Booked+f.Refused+f.Undone+f.Wrong != len(b.plan) {
			t.Errorf("%s: the orders do not add up to %d: %+v", name, len(b.plan), f)
		}
		if len(f.Sentences()) == 0 {
			t.Errorf("%s: no sentence", name)
		}
	}
}

func TestAudit_BadAccounts_Found(t *testing.T) {
	for want, change := range map[string]func(*books){
		"1 accounts differ from the sum of their movements":    func(b *books) { b.Bank++; b.add("x", Book, "x", "", 1); b.remove("x") },
		"2 accounts differ from the sum of their movements":    func(b *books) { b.Bank++; b.Stock-- },
		"1 movements of orders that nobody placed":             func(b *books) { b.add("x", Book, "x1", "", 100) },
		"the bank has 0.01 more than the booked orders cost":   func(b *books) { b.Bank++ },
		"the bank has 100.01 less than the booked orders cost": func(b *books) { b.Bank -= 10001 },
		"the stock lacks 2 pieces more than were booked":       func(b *books) { b.Stock -= 2 },
		"the stock lacks 3 pieces less than were booked":       func(b *books) { b.Stock += 3 },
	} {
		b := goodBooks()
		change(b)
		if f := Audit(b.plan, b.answers, &b.Books); !slices.Contains(f.Sentences(), want) || f.Wrong != 0 {
			t.Errorf("got %q, want %q", f.Sentences(), want)
		}
	}
}

func TestMistakes_AllListedOnce(t *testing.T) {
	if n := len(slices.Compact(slices.Sorted(slices.Values(Mistakes)))); n != len(Mistakes) || n != 14 {
		t.Errorf("%d different mistakes of %d", n, len(Mistakes))
	}
	if got := PaidTwice.Text(); got != "paid more than once" {
		t.Errorf("got %q", got)
	}
}

func TestMoney_Cents_TwoDigits(t *testing.T) {
	for cents, want := range map[int64]string{0: "0.00", 5: "0.05", 1234: "12.34", -70: "-0.70"} {
		if got := Money(cents); got != want {
			t.Errorf("%d cents: %s, want %s", cents, got, want)
		}
	}
}

func TestNewPlan_EqualSeed_EqualOrders(t *testing.T) {
	a, b, c := NewPlan(1, 300), NewPlan(1, 300), NewPlan(2, 300)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the seed does not decide")
	}
	n := map[Step]int{}
	for i := range a {
		n[a[i].Refuser]++
		if a[i].ID != fmt.Sprintf("order-%05d", i+1) || a[i].Cents < 100 {
			t.Errorf("order %+v", a[i])
		}
	}
	if n[""] < 180 || n[Pay] < 15 || n[Hold] < 15 || n[Book] < 15 {
		t.Errorf("refusals %v", n)
	}
}
