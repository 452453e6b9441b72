package login

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

var discard = slog.New(slog.DiscardHandler)

// ask sends a request, and returns the status and the name that the handler got.
func ask(l *Login, change func(*http.Request)) (status int, name string) {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8089/", nil)
	change(r)
	w := httptest.NewRecorder()
	l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { name = Operator(r) })).ServeHTTP(w, r)
	return w.Code, name
}

func users(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestByPassword_OnlyUsersWithTheirPassword(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ByPassword(users(t, "# operators\n\neve:"+string(hash)+"\n"), discard)
	if err != nil {
		t.Fatal(err)
	}
	if status, name := ask(l, func(r *http.Request) { r.SetBasicAuth("eve", "secret") }); status != http.StatusOK || name != "eve" {
		t.Errorf("eve: status %d, name %q", status, name)
	}
	for what, change := range map[string]func(*http.Request){
		"no password":    func(*http.Request) {},
		"wrong password": func(r *http.Request) { r.SetBasicAuth("eve", "Secret") },
		"no such user":   func(r *http.Request) { r.SetBasicAuth("ann", "secret") },
		"empty":          func(r *http.Request) { r.SetBasicAuth("", "") },
	} {
		if status, name := ask(l, change); status != http.StatusUnauthorized || name != "" {
			t.Errorf("%s: status %d, name %q", what, status, name)
		}
	}
}

func TestByPassword_NoRegularFile_IsRefused(t *testing.T) {
	if _, err := ByPassword(os.DevNull, discard); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}

// A user who is removed from the file is out at once. While the file is not as it should
// be, nobody is let in, and the log says why.
func TestByPassword_FileChanges_HoldsAtOnce(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	path := users(t, "eve:"+string(hash)+"\nann:"+string(hash)+"\n")
	var log bytes.Buffer
	l, err := ByPassword(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		content  string
		eve, ann int
	}{
		{"ann:" + string(hash), http.StatusUnauthorized, http.StatusOK},
		{"ann:" + string(hash[:20]), http.StatusServiceUnavailable, http.StatusServiceUnavailable}, // half written
		{"", http.StatusServiceUnavailable, http.StatusServiceUnavailable},
		{"eve:" + string(hash), http.StatusOK, http.StatusUnauthorized},
	} {
		if err := os.WriteFile(path, []byte(change.content), 0o600); err != nil {
			t.Fatal(err)
		}
		for user, want := range map[string]int{"eve": change.eve, "ann": change.ann} {
			if status, _ := ask(l, func(r *http.Request) { r.SetBasicAuth(user, "secret") }); status != want {
				t.Errorf("with %q %s gets status %d, want %d", change.content, user, status, want)
			}
		}
	}
	if !strings.Contains(log.String(), "line 1 is not USER:HASH") || !strings.Contains(log.String(), "has no user") {
		t.Errorf("logged %q", log.String())
	}
}

func TestByPassword_BadFile_ErrorNamesTheCommand(t *testing.T) {
	for text, want := range map[string]string{"": "has no user", "eve:plain": "line 1 is not USER:HASH", "#\neve": "line 2"} {
		if _, err := ByPassword(users(t, text), discard); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "htpasswd") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestByHeader_OneHeader(t *testing.T) {
	l := ByHeader("X-User", nil)
	for _, values := range [][]string{{"eve"}, {}, {""}, {"eve", "ann"}} {
		status, name := ask(l, func(r *http.Request) { r.Header["X-User"] = values })
		if ok := len(values) == 1 && values[0] == "eve"; (status == http.StatusOK) != ok || (name == "eve") != ok {
			t.Errorf("%q: status %d, name %q", values, status, name)
		}
	}
}

func TestNoLogin_OnlyByLocalNames(t *testing.T) {
	for host, want := range map[string]int{
		"127.0.0.1:8089": 200, "localhost:8089": 200, "[::1]:8089": 200, "localhost": 200, "evil.example:8089": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403,
	} {
		if status, name := ask(&Login{}, func(r *http.Request) { r.Host = host; r.Header.Set("X-User", "eve") }); status != want || name != "" {
			t.Errorf("%s: status %d, want %d, name %q", host, status, want, name)
		}
	}
}

// A page of another site can give its own name the address of this machine.
func TestByHeader_OnlyByLocalNamesAndHosts(t *testing.T) {
	l := ByHeader("X-User", []string{"console.example.org"})
	for host, want := range map[string]int{
		"127.0.0.1:8089": http.StatusOK, "localhost": http.StatusOK, "[::1]:8089": http.StatusOK, "console.example.org": http.StatusOK, "Console.Example.ORG:443": http.StatusOK,
		"evil.example": http.StatusForbidden, "127.0.0.1.evil.example:8089": http.StatusForbidden, "console.example.org.evil.example": http.StatusForbidden, "": http.StatusForbidden,
	} {
		status, name := ask(l, func(r *http.Request) {
			r.Host = host
			r.Header.Set("X-User", "eve")
		})
		if status != want || (name == "eve") != (want == http.StatusOK) {
			t.Errorf("%q: status %d and name %q, want %d", host, status, name, want)
		}
	}
}
