// Package saga runs operations of several steps over several systems. Each step has its
// effect once. If a step fails for good, the saga turns back: the compensations of the
// steps before it run in reverse order, each once. After a crash another process goes on
// where the record of the saga ends.
//
//	place, err := saga.New(guard, saga.Definition[Order, Receipt]{
//		Name:  "order",
//		Steps: []string{"hold", "charge", "book"},
//		Run: func(ctx context.Context, r *saga.Run, in Order) (Receipt, error) {
//			hold, err := saga.Step(ctx, r, "hold", holdStock(in), releaseStock)
//			if err != nil {
//				return Receipt{}, err
//			}
//			…
//		},
//	})
//	receipt, err := place.Do(ctx, tenant, order.ID, order) // to its end, here
//	err = place.Start(ctx, tenant, order.ID, order)        // later, by a worker
//	err = place.Work(ctx, nil)                             // a worker
//
// A step that returns a *semel.Failure (see semel.Final) turns the saga back. After any
// other error, and after a crash, the saga goes on later: it runs the definition again,
// which gets the recorded results of the steps that are done.
//
// The store has to keep steps (store.Journal) and timers (store.Timers).
package saga
