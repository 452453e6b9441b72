//go:build unix

package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel/internal/proctest"
)

// The functions also run in AWS's own emulator of the Runtime API: a batch with a
// message that fails, and a time-out.
func TestEmulator_BatchAndTimeout_AsInSandbox(t *testing.T) {
	folder := t.TempDir()
	e := newEmulator(t, "batch", folder, "10m")
	message := func(id, body string) events.SQSMessage {
		return events.SQSMessage{MessageId: id, Body: body, EventSourceARN: "arn:aws:sqs:eu-west-1:1:q"}
	}
	batch := events.SQSEvent{Records: []events.SQSMessage{message("1", `{"id":"a"}`), message("2", `{}`), message("3", `{"id":"a"}`)}}
	for range 2 {
		if got := e.post(batch); got != `{"batchItemFailures":[{"itemIdentifier":"2"}]}` {
			t.Errorf("the emulator answers %s", got)
		}
	}

	e = newEmulator(t, "pay", folder, "10m")
	if got := e.post(payment{ID: "b", Mode: "deaf", Millis: 600_000}); strings.HasPrefix(got, `"b `) {
		t.Errorf("the emulator answers %s after its time-out", got)
	}
	if got := e.post(payment{ID: "b"}); !strings.HasPrefix(got, `"b 2 `) {
		t.Errorf("after the time-out the emulator answers %s; want the second attempt, at once", got)
	}
}

func TestEmulator_KilledOrTimedOut_OneOutcomePerKey(t *testing.T) {
	folder := t.TempDir()
	payThroughDeaths(t, "AWS's emulator", folder, newEmulator(t, "pay", folder, "1s"), newEmulator(t, "pay", folder, "1s"))
}

func TestEmulator_BatchesKilled_EachBookedOnceInOrder(t *testing.T) {
	folder := t.TempDir()
	bookThroughDeaths(t, "AWS's emulator", folder, newEmulator(t, "batch", folder, "1s"), newEmulator(t, "batch", folder, "1s"))
}

// emulator is a process of aws-lambda-rie, which starts the processes of a function.
// Its time-out is emulatorTimeout.
type emulator struct {
	t    *testing.T
	port int
	proc *proctest.Process
}

const emulatorTimeout = 2 * time.Second

// emulatorProgram is the program of SEMEL_TEST_RIE_BIN, of the PATH, or where
// scripts/lambda-rie installs it. Without any of them the test is skipped.
func emulatorProgram(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("SEMEL_TEST_RIE_BIN"); bin != "" {
		return bin
	}
	if bin, err := exec.LookPath("aws-lambda-rie"); err == nil {
		return bin
	}
	missing := errors.New("there is no aws-lambda-rie; run scripts/lambda-rie, or name it in SEMEL_TEST_RIE_BIN")
	cache, err := os.UserCacheDir()
	if err != nil {
		proctest.Need(t, missing, missing)
	}
	bin := filepath.Join(cache, "semel", "lambda-rie", "aws-lambda-rie")
	if _, err := os.Stat(bin); err != nil {
		proctest.Need(t, missing, missing)
	}
	return bin
}

func newEmulator(t *testing.T, function, folder, lease string) *emulator {
	t.Helper()
	program := emulatorProgram(t)
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	api, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--runtime-interface-emulator-address", fmt.Sprint("127.0.0.1:", port), "--runtime-api-address", fmt.Sprint("127.0.0.1:", api), "--log-level", "error", os.Args[0])
	cmd.Env = append(os.Environ(), functionVar+"="+function, folderVar+"="+folder, leaseVar+"="+lease,
		fmt.Sprintf("AWS_LAMBDA_FUNCTION_TIMEOUT=%d", emulatorTimeout/time.Second), "AWS_LAMBDA_FUNCTION_NAME="+function)
	e := &emulator{t, port, proctest.Run(t, cmd)}
	t.Cleanup(func() { e.proc.End(syscall.SIGTERM, 5*time.Second) })
	return e
}

// invoke implements box. The function kills itself, because the emulator does not tell
// its process.
func (e *emulator) invoke(_ string, event any, _, killAfter time.Duration) ([]byte, error) {
	die := int(killAfter / time.Millisecond)
	switch event := event.(type) {
	case payment:
		event.Die = die
		return resultOf(e.post(event))
	case events.SQSEvent:
		first := event.Records[0] // a copy, because other processes get the same event
		first.Attributes = maps.Clone(first.Attributes)
		first.Attributes[dieAttribute] = strconv.Itoa(die)
		event.Records = append([]events.SQSMessage{first}, event.Records[1:]...)
		return resultOf(e.post(event))
	}
	return nil, fmt.Errorf("no event: %T", event)
}

// resultOf tells a result from an answer after the end of the process.
func resultOf(answer string) ([]byte, error) {
	switch {
	case strings.Contains(answer, "timed out after"):
		return nil, errTimeout
	case strings.Contains(answer, "Runtime exited"), strings.Contains(answer, "Runtime.ExitError"), answer == "":
		return nil, errKilled
	case strings.Contains(answer, "errorMessage"):
		return nil, fmt.Errorf("the function failed: %s", answer)
	}
	return []byte(answer), nil
}

// post invokes the function, and returns the emulator's answer.
func (e *emulator) post(event any) string {
	e.t.Helper()
	body, err := json.Marshal(event)
	if err != nil {
		e.t.Error(err)
		return ""
	}
	for {
		res, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/2015-03-31/functions/function/invocations", e.port), "application/json", bytes.NewReader(body))
		if err != nil {
			select {
			case <-e.proc.Ended():
				e.t.Errorf("the emulator has ended: %v", e.proc.Wait())
				return ""
			case <-time.After(20 * time.Millisecond): // it does not listen yet
			}
			continue
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close() // it has been read
		if err != nil {
			e.t.Error(err)
		}
		return string(answer)
	}
}
