package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// hashKeys writes a file for --hash-keys-file.
func hashKeys(t *testing.T, letter string) (path string, secret []byte) {
	t.Helper()
	secret = []byte(strings.Repeat(letter, 32))
	return write(t, "hash-keys", base64.StdEncoding.EncodeToString(secret)+"\n"), secret
}

// seedBoth is a store from before hashing was turned on, with the five records of seed in the
// clear, and one record of the same tenant, operation and key that is hashed.
func seedBoth(t *testing.T) (url, file, hashedTenant string, st *sqlitestore.Store) {
	t.Helper()
	file, secret := hashKeys(t, "a")
	url, st = seed(t)
	g, err := semel.New(st, &semel.Options{HashKeys: secret})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "http", Tenant: "ann", Key: "done", Payload: semel.NoPayload()}
	if _, err := g.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{Code: 201}, nil }); err != nil {
		t.Fatal(err)
	}
	return url, file, store.Key{Tenant: "ann"}.Hashed(secret).Tenant, st
}

// Records from before hashing was turned on belong to the tenant, too.
func TestErase_HashKeysFile_ErasesHashedAndClearRecords(t *testing.T) {
	t.Parallel()
	yes := []string{"--yes", "--reason", "ticket 12"}
	for name, c := range map[string]struct {
		scope           []string
		want            string // after the verb
		before, removed int
	}{
		"tenant": {nil, "5 records (4 stored as given, 1 as hashes); left: 0 running, 1 in doubt", 6, 5},
		"key":    {[]string{"--operation", "http", "--key", "done"}, "2 records (1 stored as given, 1 as hashes); left: 0 running, 0 in doubt", 6, 2},
	} {
		url, file, _, st := seedBoth(t)
		args := append([]string{"erase", "--store", url, "--tenant", "ann", "--hash-keys-file", file}, c.scope...)
		if r := command(t, args...); r.code != program.ExitOK || !strings.Contains(r.stdout, "with --yes it would erase "+c.want) || left(t, st) != c.before {
			t.Errorf("%s, without --yes: %+v; %d records", name, r, left(t, st))
		}
		if r := command(t, append(args, yes...)...); !strings.HasPrefix(r.stdout[strings.LastIndex(r.stdout, "erased "):], "erased "+c.want) || left(t, st) != c.before-c.removed ||
			!strings.Contains(r.stderr, `"erased_by_hash":1`) {
			t.Errorf("%s: %+v; %d records", name, r, left(t, st))
		}
		r := command(t, append(append(args, yes...), "--json")...)
		var counts erasedCounts
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &counts); err != nil || counts.Erased+counts.ErasedByHash != 0 {
			t.Errorf("%s, once more: %v, %+v", name, err, r)
		}
	}
}

// A tenant can be given as it is stored, with and without the file.
func TestErase_HashOfTenantGiven_ErasesItsRecords(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]bool{"without the file": false, "with the file": true} {
		url, file, hashed, st := seedBoth(t)
		path := filepath.Join(t.TempDir(), "audit")
		args := []string{"erase", "--store", url, "--tenant", hashed, "--yes", "--reason", "ticket 12", "--audit", path}
		if with {
			args = append(args, "--hash-keys-file", file)
		}
		if r := command(t, args...); r.code != program.ExitOK || !strings.Contains(r.stdout, "erased 1 record") || left(t, st) != 5 {
			t.Errorf("%s: %+v; %d records", name, r, left(t, st))
		}
		if want := fmt.Sprintf(`"tenant_sha256":"%x"`, sha256.Sum256([]byte(hashed))); strings.Count(read(t, path), want) != 2 {
			t.Errorf("%s: the trail has no %s: %s", name, want, read(t, path))
		}
	}
}

// brokenList is a store that cannot list the records of one tenant.
type brokenList struct {
	storeurl.Handle
	tenant string
}

func (b *brokenList) Unwrap() store.Store { return b.Handle }

func (b *brokenList) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	if f.Tenant == b.tenant {
		return func(yield func(store.Found, error) bool) { yield(store.Found{}, errors.New("connection reset")) }
	}
	l, _ := store.As[store.Lister](b.Handle)
	return l.List(ctx, f)
}

// The error says which records were not looked at, and the command can be repeated.
func TestErase_OnePassFails_SaysWhichAndIsRepeatable(t *testing.T) {
	t.Parallel()
	for failing, c := range map[string]struct {
		want                string
		erased, byHash, has int
	}{
		"as given": {"records stored as given broke off, and the pass over records stored as hashes did not begin", 0, 0, 6},
		"hashed":   {"records stored as hashes broke off; the pass over records stored as given has ended", 4, 0, 2},
	} {
		url, file, hashed, st := seedBoth(t)
		cmd := eraseCmd{storeFlag: storeFlag{Store: url}, hashFlag: hashFlag{HashKeysFile: file}, Tenant: "ann", Yes: true, Reason: "ticket 12", Timeout: config.Duration(time.Second)}
		err := cmd.with(t.Context(), nil, func(h storeurl.Handle) error {
			u, err := storeurl.Parse(url, "--store")
			if err != nil {
				return err
			}
			broken := &brokenList{Handle: h, tenant: map[string]string{"as given": "ann", "hashed": hashed}[failing]}
			p := erasePrinter{env: &env{stdout: io.Discard, stderr: io.Discard}, passes: 2}
			counts, err := cmd.erase(t.Context(), broken, &u, []store.Key{{Tenant: "ann"}, {Tenant: hashed}}, &p)
			if counts.Erased != c.erased || counts.ErasedByHash != c.byHash {
				t.Errorf("%s: counts %+v", failing, counts)
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "give the command again") || !strings.Contains(err.Error(), "connection reset") ||
			!errors.Is(err, semel.ErrUnavailable) || left(t, st) != c.has {
			t.Errorf("%s: error %v; %d records, want %d", failing, err, left(t, st), c.has)
		}
		if r := command(t, "erase", "--store", url, "--tenant", "ann", "--hash-keys-file", file, "--yes", "--reason", "ticket 12"); r.code != program.ExitFailed || left(t, st) != 1 {
			t.Errorf("%s, again: %+v; %d records", failing, r, left(t, st))
		}
	}
}

// The result of an erasure says how many records it has erased and left, so that an auditor
// does not take an entry that found nothing for the proof of the erasure.
func TestAudit_Erasure_ResultHasCounts(t *testing.T) {
	t.Parallel()
	file, secret := hashKeys(t, "a")
	url, _ := seedWith(t, secret)
	path := filepath.Join(t.TempDir(), "trail")
	for _, c := range []struct {
		args                 []string
		result               string
		erased, byHash, left float64
	}{
		{nil, "nothing to erase", 0, 0, 0}, // without the file
		{[]string{"--hash-keys-file", file, "--operation", "a#b"}, "not done", 0, 0, 0},
		{[]string{"--hash-keys-file", file, "--operation", "http", "--key", "done"}, "done", 1, 1, 0},
		{[]string{"--hash-keys-file", file}, "partly done", 3, 3, 1},
		{[]string{"--hash-keys-file", file, "--operation", "other"}, "nothing to erase", 0, 0, 0},
	} {
		r := command(t, append([]string{"erase", "--tenant", "ann", "--yes", "--store", url, "--reason", "ticket 12", "--audit", path}, c.args...)...)
		lines := trail(t, path)
		intent, result := lines[len(lines)-2], lines[len(lines)-1]
		if intent["event"] != "intent" || intent["erased"] != nil || intent["left"] != nil {
			t.Errorf("%v: the intent %v has counts, which nobody knows before", c.args, intent)
		}
		if result["result"] != c.result || result["erased"] != c.erased || result["erased_by_hash"] != c.byHash || result["left"] != c.left {
			t.Errorf("%v: %v, want %+v; %+v", c.args, result, c, r)
		}
		if nothing := c.result == "nothing to erase"; strings.Contains(r.stderr, `"result":"nothing to erase"`) != nothing || strings.Contains(r.stderr, "there was nothing to erase") != nothing {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

// The log and the trail name both forms of the tenant and count each, so that a search by
// either finds the erasure. If no record was stored as given, they have nothing that somebody
// could guess.
func TestErase_BothForms_LogAndTrailNameEach(t *testing.T) {
	t.Parallel()
	file, secret := hashKeys(t, "a")
	bothURL, _, hashed, _ := seedBoth(t)
	onlyHashes, _ := seedWith(t, secret)
	sum := func(tenant string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(tenant))) }
	key := store.Key{Operation: "http", Tenant: "ann", Value: "done"}
	for name, c := range map[string]struct {
		url, tenant string
		scope       []string
		main        string
		want        map[string]any // other_part; nil: none
	}{
		"key":         {bothURL, "ann", []string{"--operation", "http", "--key", "done"}, hashed, map[string]any{"stored": "as given", "operation": "http", "tenant_sha256": sum("ann"), "key": key.Short(), "erased": 1., "left": 0.}},
		"only hashes": {onlyHashes, "ann", nil, hashed, nil},
		"by the hash": {onlyHashes, hashed, nil, hashed, nil},
	} {
		checkOtherPart(t, name, c.url, c.tenant, file, c.scope, sum(c.main), sum("ann"), c.want)
	}
	checkOtherPart(t, "tenant", bothURL, "ann", file, nil, sum(hashed), sum("ann"), map[string]any{"stored": "as given", "tenant_sha256": sum("ann"), "erased": 3., "left": 1.})
}

// checkOtherPart erases a scope, and compares what the log and the trail have of it.
func checkOtherPart(t *testing.T, name, url, tenant, file string, scope []string, main, given string, want map[string]any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trail")
	args := append([]string{"erase", "--store", url, "--tenant", tenant, "--hash-keys-file", file, "--yes", "--reason", "ticket 12", "--audit", path}, scope...)
	r := command(t, args...)
	lines := trail(t, path)
	for line := range strings.Lines(r.stderr) {
		var l map[string]any
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &l) == nil && l["msg"] == "erase" {
			lines = append(lines, l)
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%s: %d lines, want two of the trail and one of the log: %+v", name, len(lines), r)
	}
	for i, l := range lines {
		part, _ := l["other_part"].(map[string]any)
		if l["tenant_sha256"] != main || i > 0 && !maps.Equal(part, want) || i == 0 && part != nil {
			t.Errorf("%s: line %d is %v, want the tenant %s and the other part %v", name, i, l, main, want)
		}
	}
	text := strings.ReplaceAll(read(t, path)+r.stderr, url, "")
	if want == nil && strings.Contains(text, given) || strings.Contains(text, `"ann"`) {
		t.Errorf("%s: the tenant can be guessed from\n%s", name, text)
	}
}
