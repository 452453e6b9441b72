package proxy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// lockedText is a log that two goroutines use.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func (l *lockedText) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), s)
}

// A new secret in the file is used without a restart. A broken file changes nothing, nor
// does a file in which an ID has another secret than before.
func TestSecrets_FileChanges_UsedWithoutRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	write := func(doc string) {
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a:00112233445566778899aabbccddeeff\n")
	var log lockedText
	st := memstore.New(nil)
	p := &Proxy{Parts: Parts{Config: &config.Config{SecretFile: path}, Store: st, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Secrets: []semel.Secret{{ID: "a", Key: []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")}}}}
	g, err := p.newGuard(func(list []semel.Secret) (*semel.Guard, error) { return semel.New(st, &semel.Options{Secrets: list}) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.reloadSecrets(ctx, time.Millisecond)
	}()
	secretOf := func(key string) string {
		if _, err := g.Run(t.Context(), semel.Call{Operation: "o", Tenant: semel.Shared, Key: key, Payload: semel.JSON(1)},
			func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, nil }); err != nil {
			t.Fatal(err)
		}
		f, err := st.Get(t.Context(), store.Key{Operation: "o", Value: key})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return f.Record.Fingerprint.KeyID
	}
	until := func(ok func() bool) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
			if time.Now().After(end) {
				t.Fatalf("not within a minute; logged %s", log.b.String())
			}
		}
	}
	if id := secretOf("1"); id != "a" {
		t.Fatalf("the first secret is %q", id)
	}
	write("b2:00112233445566778899aabbccddeeff\na:00112233445566778899aabbccddeeff\n")
	until(func() bool { return log.has("read the secrets again") && log.has("hashes=b2 compare=b2,a,unkeyed") })
	if id := secretOf("2"); id != "b2" {
		t.Errorf("after the change it is %q", id)
	}
	if log.has("readable for others") {
		t.Error("a warning about a file that only its owner can read")
	}
	if log.has("have left the file") {
		t.Error("a warning about dropped secrets although none was")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	write("b3:00112233445566778899aabbccddeeff\nb2:00112233445566778899aabbccddeeff\n")
	until(func() bool { return log.has("readable for others") && log.has("chmod 600 "+path) })
	if !log.has("level=WARN msg=\"secrets have left the file") || !log.has("dropped=a file="+path) {
		t.Errorf("no warning about the dropped secret: %s", log.b.String())
	}
	write("broken\n")
	until(func() bool { return log.has("cannot be used") })
	if id := secretOf("3"); id != "b3" {
		t.Errorf("after a broken file it is %q", id)
	}
	write("n1:00112233445566778899aabbccddeeff\na:ffeeddccbbaa99887766554433221100\n")
	until(func() bool { return log.has("has another secret") || log.has("hashes=n1") })
	if id := secretOf("4"); id != "b3" {
		t.Errorf("after a file with another secret of an ID it is %q", id)
	}
	cancel()
	<-ended
}

// A rotated file that must not be read for a while has the same time and size before and
// after the operator's chmod. A directory under the path stands for it, because the
// superuser may read every file. Swapped lines within one time go the same way.
func TestSecrets_SameTimeAndSize_ReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const a, b = "a:00112233445566778899aabbccddeeff\n", "b:ffeeddccbbaa99887766554433221100\n"
		path := filepath.Join(t.TempDir(), "secrets")
		write := func(doc string, at os.FileInfo) os.FileInfo {
			err := os.WriteFile(path, []byte(doc), 0o600)
			if at != nil {
				err = errors.Join(err, os.Chtimes(path, at.ModTime(), at.ModTime()))
			}
			info, statErr := os.Stat(path)
			if err = errors.Join(err, statErr); err != nil {
				t.Fatal(err)
			}
			return info
		}
		first := write(a+b, nil)
		list, err := secrets.Read(path, "secret-file")
		if err != nil {
			t.Fatal(err)
		}
		var log lockedText
		p := &Proxy{Parts: Parts{Config: &config.Config{SecretFile: path}, Log: slog.New(slog.NewTextHandler(&log, nil)), Secrets: list}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.reloadSecrets(ctx, time.Second)
		pass := func() { time.Sleep(3 * time.Second); synctest.Wait() }
		pass()
		if log.has("read the secrets again") {
			t.Error("an unchanged file was put into use")
		}
		write(b+a, first)
		pass()
		if n := log.count("hashes=b compare=b,a"); n != 1 {
			t.Errorf("swapped lines were put into use %d times", n)
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		unreadable, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		pass()
		if n := log.count("cannot be used"); n != 1 {
			t.Errorf("an unreadable file was logged %d times", n)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(a+b+strings.Repeat("\n", max(0, int(unreadable.Size())-len(a+b))), unreadable)
		pass()
		if n := log.count("hashes=a compare=a,b"); n != 1 {
			t.Errorf("the mended file was put into use %d times: %s", n, log.b.String())
		}
		write(a+b+"c:"+strings.Repeat("33", 20), nil)
		pass()
		if n := log.count("the last line has no newline"); n != 1 || log.has("compare=a,b,c") {
			t.Errorf("half a line was logged %d times", n)
		}
		write(a+b+"c:"+strings.Repeat("33", 32)+"\n", nil)
		pass()
		if n := log.count("hashes=a compare=a,b,c"); n != 1 {
			t.Errorf("the whole file was put into use %d times", n)
		}
	})
}
