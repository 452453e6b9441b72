package answertest

import "testing"

// The table has to pass for the middleware with which it compares.
func TestRun_PlainMiddleware_EqualsItself(t *testing.T) { Run(t, startPlain) }
