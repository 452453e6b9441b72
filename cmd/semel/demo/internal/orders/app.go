package orders

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// App takes orders, and works on them. The demo places orders and asks how they ended;
// workers, which are other processes, work.
type App interface {
	// Place keeps an order for the workers.
	Place(ctx context.Context, o *Order) error
	// Answers says what the app knows of each order.
	Answers(ctx context.Context) (map[string]Answer, error)
	// Work works on orders until ctx ends.
	Work(ctx context.Context) error
	Close() error
}

// Answer is what an app knows of an order.
type Answer struct {
	End End
	PID int // without a journal: the process that has taken the order
}

// End is how an order ended.
type End string

// The ends of an order.
const (
	Open   End = ""       // it has not ended
	Booked End = "booked" // paid, held and booked
	Undone End = "undone" // refused, and the steps before the refusal are undone
)

// Options are what a worker is told.
type Options struct {
	Shop    string // the path of the shop's file
	File    string // the path of the app's file
	Journal string // the worker's own
	Work    time.Duration
	Lease   time.Duration
	Semel   bool
	// FreshKeys gives each attempt of a step a new key, which is a mistake: the other
	// system cannot recognise a request that comes again.
	FreshKeys bool
}

// concurrency is how many orders a worker works on at the same time.
const concurrency = 4

// OpenApp opens an app. The demo, which does not work, has no journal.
func OpenApp(ctx context.Context, o *Options, shop *Shop) (App, error) {
	return openApp(ctx, o, &worker{shop: shop, freshKeys: o.FreshKeys})
}

func openApp(ctx context.Context, o *Options, w *worker) (App, error) {
	if o.Semel {
		return openSagas(ctx, o, w)
	}
	return openNaive(ctx, o, w)
}

// Serve is a worker: it works until ctx ends.
func Serve(ctx context.Context, o *Options) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d, err := openDiary(o.Journal, fail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.j.Close()) }()
	shop, err := OpenShop(ctx, o.Shop, o.Work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.Close()) }()
	app, err := openApp(ctx, o, &worker{shop: shop, diary: d, freshKeys: o.FreshKeys})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	err = app.Work(ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) { // the journal's
		err = errors.Join(err, cause)
	}
	return err
}

// worker sends requests to the shop, and notes them.
type worker struct {
	shop      *Shop
	diary     *diary
	freshKeys bool
}

// send sends a request with a key.
func (w *worker) send(ctx context.Context, o *Order, step Step, key, undoes string) error {
	if w.freshKeys {
		key = rand.Text()
	}
	w.diary.note(&Entry{Kind: Begun, Order: o.ID})
	known, err := w.shop.change(ctx, o, step, key, undoes)
	if err == nil {
		w.diary.note(&Entry{Kind: Done, Order: o.ID, Known: known})
	}
	return err
}
