package driver_test

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// A loop of your own asks Decide after each try.
func ExampleDecide() {
	d := driver.Decide(driver.Result{Err: errors.New("timeout"), FromHandler: true, Attempt: 1}, driver.Policy{Backoff: consume.Backoff})
	fmt.Println(d.Action, d.Delay > 0)
	d = driver.Decide(driver.Result{Err: &semel.Error{Reason: semel.ErrParked}}, driver.Policy{})
	fmt.Println(d.Action, d.Reason)
	// Output:
	// retry true
	// quarantine outcome_unknown
}
