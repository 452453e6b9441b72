package cli

import "errors"

// demoCmd names the program that took the place of semel demo.
type demoCmd struct{}

func (demoCmd) Run() error {
	return errors.New("the demo is a program of its own: go run github.com/semel-go/semel/cmd/semel/demo@latest (in a clone: go run ./cmd/semel/demo)")
}
