package login

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// ByPassword takes users and passwords from a file with lines USER:HASH, as
// htpasswd -B writes them. Empty lines and lines with # are skipped. The file is read again
// for each request, so that a user who was removed is out at once. While it cannot be read,
// nobody is let in, and log gets the reason.
func ByPassword(path string, log *slog.Logger) (*Login, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file; it is read again for each request")
	}
	_, err := readUsers(path)
	return &Login{path: path, log: log, passwords: newPasswords()}, err
}

// readUsers returns the bcrypt hashes by user.
func readUsers(path string) (map[string][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New(input.Unreadable(err, fmt.Sprintf("make it with: (umask 077; htpasswd -cB %s USER)", path)))
	}
	defer func() { _ = f.Close() }() // nothing was written
	users := map[string][]byte{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		user, hash, ok := strings.Cut(line, ":")
		if _, err := bcrypt.Cost([]byte(hash)); !ok || user == "" || err != nil {
			return nil, fmt.Errorf("line %d is not USER:HASH with a bcrypt hash; make one with: htpasswd -nB USER (package apache2-utils), or mkpasswd -m bcrypt (package whois)", n)
		}
		users[user] = []byte(hash)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(users) == 0 {
		return nil, errors.New("has no user; add one with: htpasswd -B FILE USER (package apache2-utils)")
	}
	return users, nil
}

// passwords checks passwords, one at a time, so that wrong ones take no more than one
// processor of the machine. It remembers the last right password of each user as a hash with
// a secret of this process, so that users who have logged in do not wait for wrong ones. Safe
// for concurrent use.
type passwords struct {
	turn    chan struct{}
	compare func(hash, password []byte) error // tests change it
	secret  []byte
	mu      sync.Mutex
	right   map[string][]byte // by user; see mark
}

func newPasswords() *passwords {
	p := &passwords{turn: make(chan struct{}, 1), compare: bcrypt.CompareHashAndPassword, secret: make([]byte, 32), right: map[string][]byte{}}
	_, _ = rand.Read(p.secret) // it never fails
	return p
}

// maxWait is how long a request waits for its turn.
const maxWait = 5 * time.Second

// match reports whether a user is in the file and has this password. The error says that it
// could not be checked in time.
func (p *passwords) match(ctx context.Context, users map[string][]byte, user, password string) (ok bool, err error) {
	hash, known := users[user]
	if !known {
		hash = p.standIn(users, user)
	}
	mark := p.mark(hash, password)
	p.mu.Lock()
	ok = known && hmac.Equal(p.right[user], mark)
	p.mu.Unlock()
	if ok {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-p.turn }()
	if p.compare(hash, []byte(password)) != nil || !known {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.right[user] = mark
	return true, nil
}

// standIn is the hash to compare with if there is no such user: always the same one of the
// file, so that the time of an answer does not tell which users there are.
func (p *passwords) standIn(users map[string][]byte, user string) []byte {
	names := slices.Sorted(maps.Keys(users))
	n := binary.BigEndian.Uint64(p.mark([]byte("stand-in"), user))
	return users[names[n%uint64(len(names))]]
}

// mark is a hash of a password that belongs to the hash in the file.
func (p *passwords) mark(hash []byte, password string) []byte {
	h := hmac.New(sha256.New, p.secret)
	h.Write(hash) // bcrypt's hashes have no byte 0
	h.Write([]byte{0})
	h.Write([]byte(password))
	return h.Sum(nil)
}
