package handlererr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel/internal/handlererr"
)

func TestIsNoEffect_ErrorTrees_EachPartMustSayNoEffect(t *testing.T) {
	plain := errors.New("timeout")
	marked := &handlererr.NoEffect{Err: plain}
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
		"the error of a finished run":  {handlererr.HideNoEffect(marked), false},
		"a finished and a marked run":  {errors.Join(handlererr.HideNoEffect(marked), marked), false},
		"a finished run, marked again": {&handlererr.NoEffect{Err: handlererr.HideNoEffect(marked)}, true},
	} {
		if got := handlererr.IsNoEffect(c.err); got != c.none {
			t.Errorf("%s: IsNoEffect is %v, want %v", name, got, c.none)
		}
	}
}

func TestHideNoEffect_MarkedError_KeepsTextAndCause(t *testing.T) {
	cause := errors.New("refused")
	err := handlererr.HideNoEffect(&handlererr.NoEffect{Err: cause})
	if err.Error() != "refused" || !errors.Is(err, cause) {
		t.Errorf("HideNoEffect returns %q, which wraps the cause: %v", err, errors.Is(err, cause))
	}
	if got := handlererr.HideNoEffect(cause); got != cause {
		t.Errorf("HideNoEffect of a plain error returns %v, want the error itself", got)
	}
}
