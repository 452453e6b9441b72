package login

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// byPassword lets eve in with the password "secret", whose hash has a cost.
func byPassword(t *testing.T, cost int) *Login {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), cost)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ByPassword(users(t, "eve:"+string(hash)+"\n"), discard)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The cost of a hash decides how long a comparison takes. htpasswd -B and mkpasswd -m bcrypt make
// hashes of cost 5, and other tools of 10 and more.
func TestHandler_WrongPassword_TimeDoesNotTellWhetherThereIsSuchAUser(t *testing.T) {
	for _, cost := range []int{bcrypt.MinCost, 10} {
		l := byPassword(t, cost)
		var costs []int
		l.passwords.compare = func(hash, _ []byte) error {
			c, err := bcrypt.Cost(hash)
			costs = append(costs, c)
			return errors.Join(err, bcrypt.ErrMismatchedHashAndPassword)
		}
		for _, user := range []string{"eve", "bob"} {
			if status, _ := ask(l, func(r *http.Request) { r.SetBasicAuth(user, "wrong") }); status != http.StatusUnauthorized {
				t.Errorf("%s: status %d", user, status)
			}
		}
		if !slices.Equal(costs, []int{cost, cost}) {
			t.Errorf("a user who is there and one who is not are compared with hashes of the costs %d, want %d for both", costs, cost)
		}
	}
}

func TestStandIn_EachName_HasAlwaysOneHashOfTheFile(t *testing.T) {
	p := newPasswords()
	file := map[string][]byte{"eve": []byte("a"), "ann": []byte("b"), "joe": []byte("c")}
	seen := map[string]bool{}
	for n := range 100 {
		name := string(rune('A' + n))
		first := string(p.standIn(file, name))
		seen[first] = true
		if again := string(p.standIn(file, name)); again != first {
			t.Fatalf("%q has %q and %q", name, first, again)
		}
	}
	if len(seen) != len(file) {
		t.Errorf("only %v are used", seen)
	}
}

// Wrong passwords are checked one at a time, and users who have logged in do not wait for them.
func TestHandler_WrongPasswordsAreChecked_UserWhoHasLoggedInDoesNotWait(t *testing.T) {
	l := byPassword(t, bcrypt.MinCost)
	asked := func(password string) int {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8089/", nil)
		r.SetBasicAuth("eve", password)
		w := httptest.NewRecorder()
		l.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w.Code
	}
	l.passwords.turn <- struct{}{} // another request is checked
	if status := asked("secret"); status != http.StatusServiceUnavailable {
		t.Errorf("the first log-in meanwhile: status %d, want 503", status)
	}
	<-l.passwords.turn
	if status, _ := ask(l, func(r *http.Request) { r.SetBasicAuth("eve", "secret") }); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	l.passwords.turn <- struct{}{}
	if right, wrong := asked("secret"), asked("wrong"); right != http.StatusOK || wrong != http.StatusServiceUnavailable {
		t.Errorf("statuses %d and %d, want 200 and 503", right, wrong)
	}
}

func TestHandler_PasswordChanged_OldOneIsForgotten(t *testing.T) {
	l := byPassword(t, bcrypt.MinCost)
	if status, _ := ask(l, func(r *http.Request) { r.SetBasicAuth("eve", "secret") }); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("new"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	l.path = users(t, "eve:"+string(hash))
	for password, want := range map[string]int{"secret": http.StatusUnauthorized, "new": http.StatusOK} {
		if status, _ := ask(l, func(r *http.Request) { r.SetBasicAuth("eve", password) }); status != want {
			t.Errorf("%q: status %d, want %d", password, status, want)
		}
	}
}
