package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// Workers look at a stuck saga every ten minutes only, so that many others are due before it.
func TestSagaList_StuckAfterManyDue_IsListed(t *testing.T) {
	t.Parallel()
	url, _, st := stuckSaga(t)
	for n := range 100 {
		if _, err := st.SetTimer(t.Context(), saga.Key("order", "ann", fmt.Sprint("busy", n)), store.Owner{}, store.Owner{1}, 0); err != nil {
			t.Fatal(err)
		}
	}
	r := command(t, "saga", "list", "order", "--stuck", "--store", url)
	if r.code != program.ExitOK || !strings.Contains(r.stdout, " o1 ") || strings.Contains(r.stdout, " o2 ") || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	if r := command(t, "saga", "list", "mail", "--stuck", "--store", url); strings.Contains(r.stdout, "o1") || !strings.Contains(r.stderr, "there are no such sagas") {
		t.Errorf("another definition: %+v", r)
	}
}

func TestSagaList_RecordUnreadable_OthersAreListed(t *testing.T) {
	t.Parallel()
	url, _, _ := stuckSaga(t)
	spoilt(t, url, "UPDATE semel_record SET format = 99 WHERE key = 'o1'") // its timer is the first
	for _, name := range []string{"order", ""} {
		args := []string{"saga", "list", "--store", url}
		if name != "" {
			args = append(args, name)
		}
		r := command(t, args...)
		if r.code != program.ExitFailed || !strings.Contains(r.stdout, " o2 ") || !strings.Contains(r.stderr, "format is 99") {
			t.Errorf("list %q: %+v", name, r)
		}
	}
}
