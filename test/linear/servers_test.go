package linear

import (
	"os"
	"testing"

	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(runner(func() int { return redistest.Main(m) })))
}

// runner is what each server's Main wraps: the tests, or another's Main.
type runner func() int

func (r runner) Run() int { return r() }
