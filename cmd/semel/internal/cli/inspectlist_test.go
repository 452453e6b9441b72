package cli

import (
	"context"
	"encoding/json"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// slowLister takes a time to find that there are no records.
type slowLister time.Duration

func (l slowLister) List(context.Context, store.Filter) iter.Seq2[store.Found, error] {
	return func(func(store.Found, error) bool) { time.Sleep(time.Duration(l)) }
}

func TestInspectList_LongList_SaysThatItIsStillReading(t *testing.T) {
	const none = "semel inspect list: there are no such records\n"
	for takes, want := range map[time.Duration]string{
		9 * time.Second:  "",
		25 * time.Second: "semel inspect list: still reading after 10s\nsemel inspect list: still reading after 20s\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			c := inspectListCmd{Limit: 1}
			if err := c.list(t.Context(), &env{stderr: &said}, slowLister(takes), nil); err != nil || said.String() != want+none {
				t.Errorf("in %v: error %v, said %q, want %q", takes, err, said.String(), want+none)
			}
		})
	}
}

func TestInspectList_NothingParked_HintsAtSweep(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	for state, want := range map[string]bool{"parked": true, "parked,processing": false, "started": false} {
		r := command(t, "inspect", "list", "--tenant", "bob", "--state", state, "--store", url)
		if r.code != program.ExitOK || strings.Contains(r.stderr, "semel sweep --once --store "+url+"\n") != want {
			t.Errorf("%s: %+v", state, r)
		}
	}
}

// A list that finds nothing says under which other name the records can be stored.
func TestInspectList_TenantNotFound_HintsAtHashKeysFile(t *testing.T) {
	t.Parallel()
	file, secret := hashKeys(t, "a")
	url, _ := seedWith(t, secret)
	for _, c := range []struct {
		args  []string
		hints bool
	}{
		{[]string{"--tenant", "ann"}, true},
		{[]string{"--tenant", "bob", "--state", "parked"}, true},
		{[]string{"--tenant", "bob", "--hash-keys-file", file}, false},
		{[]string{"--tenant", strings.Repeat("0", 64)}, false},
		{[]string{"--operation", "none"}, false},
	} {
		r := command(t, append([]string{"inspect", "list", "--store", url}, c.args...)...)
		if r.code != program.ExitOK || r.stdout != "" || strings.Contains(r.stderr, "; give --hash-keys-file") != c.hints {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

// A call whose process is gone, and one in doubt, say since when and what is next.
func TestInspectGet_LapsedOrInDoubt_SaysWhatIsNext(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	p := store.Proposal{Key: store.Key{Operation: "http", Tenant: "ann", Value: "gone"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Microsecond}
	if _, err := st.Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "parked"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"gone":   "semel sweep --once --store " + url,
		"parked": "in doubt since:  " + f.Record.Updated.Format(time.RFC3339Nano),
	} {
		if r := command(t, "inspect", "get", key, "--tenant", "ann", "--store", url); r.code != program.ExitOK || !strings.Contains(r.stdout, want) {
			t.Errorf("%s: no %q in %+v", key, want, r)
		}
	}
	if r := command(t, "inspect", "get", "done", "--tenant", "ann", "--store", url); strings.Contains(r.stdout, "in doubt since") || strings.Contains(r.stdout, "next step") {
		t.Errorf("%+v", r)
	}
}

// A key of a saga that is searched for under the name of the saga, or under none.
func TestInspectGet_KeyOfSaga_NamesItsOperation(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	p := store.Proposal{Key: store.Key{Operation: "order##saga", Tenant: "ann", Value: "s"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Hour}
	if _, err := st.Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for operation, want := range map[string]string{"order": "give --operation 'order##saga'", "http": "semel inspect list shows all records; for a saga give --operation 'NAME##saga'"} {
		r := command(t, "inspect", "get", "s", "--tenant", "ann", "--operation", operation, "--store", url)
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %+v", operation, r)
		}
	}
}

func TestInspectGet_NoRecord_SaysWhyInShortSentences(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	const end = `The operation "http" is only the default, and semel proxy's. A service in Go and semel deliver have others, such as "POST /payments": give --operation; semel inspect list shows it. ` +
		"The record may have expired, or have been erased: the audit trail of semel erase (its --audit) says so."
	for start, args := range map[string][]string{
		`not found: operation "http", no tenant, this key; nor is there another key with this hash. If the key is of a tenant, give --tenant. `: {"3d923a06"},
		`not found: operation "http", no tenant, this key. If the key is of a tenant, give --tenant. `:                                          {"none"},
		`not found: operation "http", tenant "ann", this key. `:                                                                                 {"none", "--tenant", "ann"},
		`not found: operation "http", tenant "ann", this key; nor is there another key of this tenant with this hash. `:                         {"3d923a06", "--tenant", "ann"},
		`no tenant, this key, which is no hash from a log either: a hash has 8 hexadecimal digits. If the key is of a tenant, give --tenant. `:  {"0EAC0c7"},
	} {
		r := command(t, append([]string{"inspect", "get", "--store", url}, args...)...)
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, start+end) {
			t.Errorf("%q is not in %+v", start+end, r)
		}
	}
	if r := command(t, "inspect", "get", "--store", url, "none", "--operation", "pay"); strings.Contains(r.stderr, "only the default") {
		t.Errorf("%+v", r)
	}
}

// A code is shown in words, with what to do about it.
func TestInspect_CodeOfLastError_ShownInWords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p := store.Proposal{Key: store.Key{Operation: "http", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Hour}
	f, err := st.Claim(t.Context(), p)
	if err == nil {
		err = st.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Unknown, Attempt: 1, Error: "upstream_lost"})
	}
	if err != nil {
		t.Fatal(err)
	}
	const meaning = "the request was sent to the service, and no whole answer came"
	if r := command(t, "inspect", "list", "--store", "sqlite:"+path); !strings.Contains(r.stdout, meaning[:50]) {
		t.Errorf("%+v", r)
	}
	if r := command(t, "inspect", "get", "k", "--store", "sqlite:"+path); !strings.Contains(r.stdout, meaning+" (upstream_lost)") || !strings.Contains(r.stdout, "what to do:") || strings.Contains(r.stdout, "it means:") {
		t.Errorf("%+v", r)
	}
	var got struct {
		Text    string `json:"last_error"`
		Code    string `json:"last_error_code"`
		Meaning string `json:"last_error_meaning"`
		Next    string `json:"last_error_next"`
	}
	r := command(t, "inspect", "get", "k", "--store", "sqlite:"+path, "--json")
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || got.Text != "upstream_lost" || got.Code != got.Text || got.Meaning != meaning || got.Next == "" {
		t.Errorf("%+v, %v; %+v", got, err, r)
	}
	url, st2 := seed(t)
	if r := command(t, "inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st2, "parked"), "--verdict", "failed", "--reason", "r"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := command(t, "inspect", "get", "parked", "--tenant", "ann", "--store", url); !strings.Contains(r.stdout, "an operator has found that it failed (resolved_failed)") {
		t.Errorf("%+v", r)
	}
}
