//go:build unix

package lambda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel/internal/proctest"
)

// The functions also run in AWS's own emulator of the Runtime API: a batch with a
// message that fails, a process that is killed, and a time-out.
func TestEmulator_BatchAndTimeout_AsInSandbox(t *testing.T) {
	program := os.Getenv("SEMEL_TEST_RIE_BIN")
	if program == "" {
		var err error
		if program, err = exec.LookPath("aws-lambda-rie"); err != nil {
			t.Skip("there is no aws-lambda-rie; install it with: go install github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d, or name it in SEMEL_TEST_RIE_BIN")
		}
	}
	folder := t.TempDir()
	invoke := emulator(t, program, "batch", folder)
	message := func(id, body string) events.SQSMessage {
		return events.SQSMessage{MessageId: id, Body: body, EventSourceARN: "arn:aws:sqs:eu-west-1:1:q"}
	}
	batch := events.SQSEvent{Records: []events.SQSMessage{message("1", `{"id":"a"}`), message("2", `{}`), message("3", `{"id":"a"}`)}}
	for range 2 {
		if got := invoke(batch); got != `{"batchItemFailures":[{"itemIdentifier":"2"}]}` {
			t.Errorf("the emulator answers %s", got)
		}
	}

	invoke = emulator(t, program, "pay", folder)
	start := time.Now()
	if got := invoke(payment{ID: "b", Mode: "deaf", Millis: 60_000}); strings.HasPrefix(got, `"b `) {
		t.Errorf("the emulator answers %s after its time-out", got)
	}
	if got := invoke(payment{ID: "b"}); !strings.HasPrefix(got, `"b 2 `) || time.Since(start) > time.Minute {
		t.Errorf("after the time-out the emulator answers %s; want the second attempt", got)
	}
}

// emulator starts the emulator with a function, and returns a function that invokes it.
func emulator(t *testing.T, program, function, folder string) func(event any) string {
	t.Helper()
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	api, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--runtime-interface-emulator-address", fmt.Sprint("127.0.0.1:", port), "--runtime-api-address", fmt.Sprint("127.0.0.1:", api), "--log-level", "error", os.Args[0])
	cmd.Env = append(os.Environ(), functionVar+"="+function, folderVar+"="+folder, leaseVar+"=10m", "AWS_LAMBDA_FUNCTION_TIMEOUT=3", "AWS_LAMBDA_FUNCTION_NAME="+function)
	p := proctest.Run(t, cmd)
	t.Cleanup(func() { p.End(syscall.SIGTERM, 5*time.Second) })
	return func(event any) string {
		t.Helper()
		body, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		for {
			res, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/2015-03-31/functions/function/invocations", port), "application/json", bytes.NewReader(body))
			if err != nil {
				select {
				case <-p.Ended():
					t.Fatalf("the emulator has ended: %v", p.Wait())
				case <-time.After(20 * time.Millisecond): // it does not listen yet
				}
				continue
			}
			answer, err := io.ReadAll(res.Body)
			_ = res.Body.Close() // it has been read
			if err != nil {
				t.Fatal(err)
			}
			return string(answer)
		}
	}
}
