//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// Variables that make this binary a process of a test.
const (
	roleVar = "SEMEL_DELIVER_ROLE" // deliver, plain, or service
	argsVar = "SEMEL_DELIVER_ARGS" // its arguments, one a line
)

func TestMain(m *testing.M) {
	args := strings.Split(os.Getenv(argsVar), "\n")
	switch os.Getenv(roleVar) {
	case "deliver":
		os.Exit(Run(program.HandleSignals(), args, os.Getenv, os.Stdout, os.Stderr))
	case "plain":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := plainConsumer(ctx, args)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "service":
		fmt.Fprintln(os.Stderr, serveLedger(args[0], args[1], args[2] == "honour"))
		os.Exit(1)
	}
	err := errors.Join(os.Setenv("AWS_ACCESS_KEY_ID", "test"), os.Setenv("AWS_SECRET_ACCESS_KEY", "test"), os.Setenv("AWS_MAX_ATTEMPTS", "1"))
	if err != nil {
		panic(err)
	}
	withSQS := proctest.TestFunc(func() int { return sqstest.Main(m) })
	withPulsar := proctest.TestFunc(func() int { return pulsartest.Main(withSQS) })
	os.Exit(amqptest.Main(proctest.TestFunc(func() int { return pgtest.Main(withPulsar) })))
}
