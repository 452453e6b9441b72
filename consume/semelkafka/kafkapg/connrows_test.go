package kafkapg

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// A handler that uses tx.Conn() while rows are open ends nothing.
func TestHandle_ConnUsedInRows_NoMessageIsBlamed(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.member(t, form, 2)
		*m.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
			rows, err := tx.Query(ctx, "SELECT 1")
			if err != nil {
				return err
			}
			for rows.Next() {
				_ = tx.Conn().TypeMap()
			}
			if err := rows.Err(); err != nil {
				return err
			}
			return p.write(ctx, tx, ms)
		}
		for range 3 {
			m.Handle(t.Context(), named("a", "b"))
		}
		wantReasons(t, m.Handle(t.Context(), named("a", "b")), driver.ReasonDuplicate, driver.ReasonDuplicate)
	})
}
