package kafkapg

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
)

// anyRedriven reports whether a message of a batch may reopen its key.
func (l *keyedLedger) anyRedriven(items []semelkafka.Item) bool {
	return l.reopen != nil && slices.ContainsFunc(items, func(it semelkafka.Item) bool {
		why, _ := it.Header(driver.RedriveHeader)
		return why != ""
	})
}

// identifyReopened returns the call of a message, after it has reopened the key of a
// redriven one. An error delays later messages of its order key, as any other error of a
// message does.
func (l *keyedLedger) identifyReopened(ctx context.Context, m *consume.Message) (semel.Call, error) {
	c, err := l.identify(m)
	if err == nil {
		err = driver.Reopen(ctx, l.reopen, c, m)
	}
	return c, err
}
