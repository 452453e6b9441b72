//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// keyLine is a line of a key file.
func keyLine(id string) string { return id + " " + strings.Repeat(id[:1], 42) + "A=\n" }

// A proxy with keys stores no answer in clear text. Operators with the keys see it, and
// without keys they see that it is encrypted.
func TestProxy_EncryptionKeys_AnswersAreEncrypted(t *testing.T) {
	t.Parallel()
	l := newBank(t)
	path := filepath.Join(t.TempDir(), "semel.db")
	keys := write(t, "keys", keyLine("old"))
	args := []string{"--listen", "127.0.0.1:0", "--upstream", l.URL, "--store", "sqlite:" + path, "--scope", "single", "--encryption-keys", keys}
	p := start(t, args...)
	first, err := post(t.Context(), wire(t), p.Addr, "/pay", "k", "{}")
	if err != nil || first.status != 201 || first.body == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	if err := errors.Join(os.Chmod(keys, 0o644), os.WriteFile(keys, []byte(keyLine("new")+keyLine("old")), 0o600)); err != nil {
		t.Fatal(err)
	}
	show := func(more ...string) string {
		return command(t, append([]string{"inspect", "get", "k", "--store", "sqlite:" + path, "--show-body"}, more...)...).stdout
	}
	eventually(t, time.Minute, "the new key encrypts", func() bool {
		_, _ = post(t.Context(), wire(t), p.Addr, "/pay", "new"+time.Now().Format("150405.000"), "{}")
		db, wal := read(t, path), read(t, path+"-wal")
		return strings.Contains(db+wal, "\x01\x03new")
	})
	again, err := post(t.Context(), wire(t), p.Addr, "/pay", "k", "{}")
	if err != nil || again.body != first.body || !again.replayed() {
		t.Errorf("the replay is %+v, %v", again, err)
	}
	p.kill()
	if log := p.Log(); !strings.Contains(log, "chmod 600 "+keys) {
		t.Errorf("no warning that others can read the changed file: %s", log)
	}
	if files := read(t, path) + read(t, path+"-wal"); strings.Contains(files, first.body) || !strings.Contains(files, "semel/encrypted") {
		t.Error("the answer is in the files in clear text")
	}
	if out := show("--encryption-keys", keys); !strings.Contains(out, first.body) {
		t.Errorf("with the keys: %s", out)
	}
	if out := show(); strings.Contains(out, first.body) || !strings.Contains(out, "encrypted; --encryption-keys shows it") {
		t.Errorf("without the keys: %s", out)
	}
	other := command(t, "inspect", "get", "k", "--store", "sqlite:"+path, "--encryption-keys", write(t, "keys", keyLine("new")))
	if other.code != program.ExitFailed || !strings.Contains(other.stderr, `unknown key "old"`) || !strings.Contains(other.stderr, "put its line there") || !strings.Contains(other.stdout, "encrypted with a key that is missing") {
		t.Errorf("without the old key: %+v", other)
	}
	list := command(t, "inspect", "list", "--store", "sqlite:"+path, "--encryption-keys", write(t, "keys", keyLine("new")))
	if list.code != program.ExitFailed || !strings.Contains(list.stderr, " left out; without --encryption-keys the list shows records as they are stored") || strings.Count(list.stderr, `unknown key "old"`) != 1 {
		t.Errorf("the list without the old key: %+v", list)
	}
	if r := command(t, "sweep", "--once", "--store", "sqlite:"+path, "--encryption-keys", keys); r.code != program.ExitOK {
		t.Errorf("sweep: %+v", r)
	}

	wrong := write(t, "keys", keyLine("a")+"b secret-key-of-the-shop\n")
	for _, verb := range [][]string{append([]string{"proxy"}, args[:len(args)-1]...), {"inspect", "get", "k", "--store", "sqlite:" + path, "--encryption-keys"}} {
		r := command(t, append(verb, wrong)...)
		if r.code != program.ExitUsage || !strings.Contains(r.stderr, `--encryption-keys: "`+wrong+`": line 2: `) || strings.Contains(r.stderr, "secret-key") {
			t.Errorf("%s with a wrong file: %+v", verb[0], r)
		}
	}
}

// A proxy warns at its start if records were written with another choice of hashing or
// encryption, because duplicates of their requests are forgotten, or refused.
func TestProxy_RecordsOfOtherOptions_WarnsAtTheStart(t *testing.T) {
	t.Parallel()
	l := newBank(t)
	hash, keys := write(t, "hash-keys", strings.Repeat("a", 43)+"=\n"), write(t, "keys", keyLine("a"))
	url := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	run := func(send bool, options ...string) string {
		p := start(t, append([]string{"--listen", "127.0.0.1:0", "--upstream", l.URL, "--store", url, "--scope", "single"}, options...)...)
		if send {
			if r, err := post(t.Context(), wire(t), p.Addr, "/pay", "k", "{}"); err != nil || r.status != 201 {
				t.Errorf("%+v, %v", r, err)
			}
		}
		p.kill()
		return p.Log()
	}
	both := []string{"--hash-keys-file", hash, "--encryption-keys", keys}
	warnings := []string{"--hash-keys-file is not set", "--encryption-keys is not set"}
	for name, log := range map[string]string{"an empty store": run(true, both...), "the same options": run(false, both...)} {
		if strings.Contains(log, "the store has records") {
			t.Errorf("%s: %s", name, log)
		}
	}
	for _, want := range warnings {
		if log := run(false); strings.Count(log, want) != 1 {
			t.Errorf("no %q in %s", want, log)
		}
	}
}

// A copy without the keys of an encrypted store would encrypt its records a second time, and
// duplicates would get 503.
func TestCopy_EncryptedWithoutItsKeys_NothingCopied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := func(name string) string { return "sqlite:" + filepath.Join(dir, name) }
	old, new := write(t, "old", keyLine("old")), write(t, "new", keyLine("new"))
	if r := command(t, "copy", "--from", filled(t, store.Completed, store.Unknown), "--to", url("enc.db"), "--to-encryption-keys", old, "--verify"); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	args := []string{"copy", "--from", url("enc.db"), "--to", url("new.db"), "--to-encryption-keys", new, "--verify"}
	r := command(t, args...)
	if r.code != program.ExitFailed || !strings.Contains(r.stdout, "read 2: copied 1, already there 0, expired 0, in flight and left 0, unreadable 1") || !strings.Contains(r.stdout, "missing 1") ||
		!strings.Contains(r.stderr, "it is encrypted already; give the keys of the store that it comes from: --from-encryption-keys") {
		t.Errorf("without its keys: %+v", r)
	}
	r = command(t, append(args, "--from-encryption-keys", old)...)
	if r.code != program.ExitOK || !strings.Contains(r.stdout, "read 2: copied 1, already there 1") || !strings.Contains(r.stdout, "compared 2: same 2") {
		t.Errorf("with its keys: %+v", r)
	}
	if r := command(t, "inspect", "get", "completed", "--tenant", "ann", "--store", url("new.db"), "--encryption-keys", new, "--show-body"); r.code != program.ExitOK || !strings.Contains(r.stdout, "answer") {
		t.Errorf("%+v", r)
	}
}
