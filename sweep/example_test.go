package sweep_test

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// A process of the service sweeps its store until the service stops.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err := sweep.Run(ctx, memstore.New(nil), &sweep.Options{
		Every:     time.Minute,
		Retention: 7 * 24 * time.Hour, // the longest of the Guards
		AfterPass: func(s sweep.Stats, err error) {
			fmt.Println("deleted", s.Deleted, "released", s.Released, "parked", s.Parked, "error", err)
			stop()
		},
	})
	fmt.Println("stopped:", err)
	// Output:
	// deleted 0 released 0 parked 0 error <nil>
	// stopped: <nil>
}
