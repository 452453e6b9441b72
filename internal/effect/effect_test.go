package effect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel/internal/effect"
)

func TestNone_ErrorTrees_EachPartMustSayNoEffect(t *testing.T) {
	plain := errors.New("timeout")
	marked := &effect.NoEffect{Err: plain}
	for name, c := range map[string]struct {
		err  error
		none bool
	}{
		"nil":                          {nil, false},
		"a plain error":                {plain, false},
		"a marked error":               {marked, true},
		"a wrapped marked error":       {fmt.Errorf("mail: %w", marked), true},
		"two marked errors":            {errors.Join(marked, marked), true},
		"a marked and a plain error":   {errors.Join(marked, plain), false},
		"the error of a finished run":  {effect.Finish(marked), false},
		"a finished and a marked run":  {errors.Join(effect.Finish(marked), marked), false},
		"a finished run, marked again": {&effect.NoEffect{Err: effect.Finish(marked)}, true},
	} {
		if got := effect.None(c.err); got != c.none {
			t.Errorf("%s: None is %v, want %v", name, got, c.none)
		}
	}
}

func TestFinish_MarkedError_KeepsTextAndCause(t *testing.T) {
	cause := errors.New("refused")
	err := effect.Finish(&effect.NoEffect{Err: cause})
	if err.Error() != "refused" || !errors.Is(err, cause) {
		t.Errorf("Finish returns %q, which wraps the cause: %v", err, errors.Is(err, cause))
	}
	if got := effect.Finish(cause); got != cause {
		t.Errorf("Finish of a plain error returns %v, want the error itself", got)
	}
}
