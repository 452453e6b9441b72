package museum

import (
	"errors"

	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// servers are those of the slots. A run of tests would otherwise start its own, which
// takes longer than most tests of a bug. Close them.
type servers []interface{ Remove() error }

// slots starts the servers that are installed, and returns so many slots. Each has a
// PostgreSQL of its own, because tests ask a server which of its sessions wait. Without
// a server, tests skip or fail as they do elsewhere.
func (s *servers) slots(n int) ([]slot, error) {
	all := make([]slot, n)
	dynamo, err := dynamotest.New()
	switch {
	case err == nil:
		*s = append(*s, dynamo)
	case !errors.Is(err, dynamotest.ErrNotInstalled):
		return nil, err
	}
	queues, err := sqstest.New()
	switch {
	case err == nil:
		*s = append(*s, queues)
	case !errors.Is(err, sqstest.ErrNotInstalled):
		return nil, err
	}
	for i := range all {
		l := &all[i]
		if queues != nil {
			l.environment = append(l.environment, "SEMEL_TEST_SQS_URL="+queues.URL())
		}
		if dynamo != nil {
			l.environment = append(l.environment, "SEMEL_TEST_DYNAMODB_URL="+dynamo.URL())
		}
		pg, err := pgtest.New(pgtest.Fast...)
		if errors.Is(err, pgtest.ErrNotInstalled) {
			continue
		}
		if err != nil {
			return nil, err
		}
		*s = append(*s, pg)
		l.environment = append(l.environment, "SEMEL_TEST_POSTGRES_URL="+pg.URL())
	}
	return all, nil
}

func (s *servers) close() (err error) {
	for _, one := range *s {
		err = errors.Join(err, one.Remove())
	}
	return err
}
