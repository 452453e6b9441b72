package scope

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// KeySetOptions configures a KeySet. Nil and zero fields mean the defaults.
type KeySetOptions struct {
	Issuer   string // the issuer that tokens must name; empty: any
	Audience string // an audience that tokens must name; empty: any
	// Pause is the least time between two fetches, however many tokens name
	// an unknown key, or are not verified: 10 s by default.
	Pause time.Duration
	// Timeout is the time limit of a fetch: 5 s by default.
	Timeout time.Duration
	Now     func() time.Time // nil: time.Now
	// Log gets each new reason why the set could not be read again, and a line when it
	// could. Nil: slog.Default().
	Log *slog.Logger
}

// KeySet is a JSON Web Key Set that it fetches and refreshes. Safe for concurrent
// use.
type KeySet struct {
	opt KeySetOptions
	// maxAge is the age at which the set is fetched again when a token comes. The old keys,
	// also a withdrawn one, are accepted until that fetch has ended. If no fetch was tried
	// for Pause more than maxAge, tokens wait for the fetch instead.
	maxAge time.Duration
	fetch  func(ctx context.Context) ([]byte, error)
	// turn is held during a fetch. No other request waits for long for the fetch, because
	// requests that wait would take the places of all tenants.
	turn  chan struct{}
	state atomic.Pointer[keys]
}

// keys are the result of the last fetches.
type keys struct {
	list   []jose.JSONWebKey
	loaded time.Time // zero: never
	tried  time.Time
	err    error // of the last try
}

const (
	maxKeySet  = 1 << 20 // bytes
	maxURLAge  = 10 * time.Minute
	maxFileAge = 10 * time.Second

	// joinTime is how long a token of a known key waits for a fetch that another token of
	// that time has begun: a page sends several requests at once.
	joinTime = 200 * time.Millisecond
)

// NewKeySet makes a KeySet of a URL or a file's path. It does no I/O.
func NewKeySet(from string, o *KeySetOptions) *KeySet {
	s := &KeySet{turn: make(chan struct{}, 1)}
	if o != nil {
		s.opt = *o
	}
	s.opt.Pause = cmp.Or(s.opt.Pause, 10*time.Second)
	s.opt.Timeout = cmp.Or(s.opt.Timeout, 5*time.Second)
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	if s.opt.Log == nil {
		s.opt.Log = slog.Default()
	}
	s.maxAge = maxFileAge
	s.fetch = func(context.Context) ([]byte, error) {
		doc, err := os.ReadFile(from)
		return doc, input.UnreadableFile(err)
	}
	if strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://") {
		s.maxAge = maxURLAge
		s.fetch = func(ctx context.Context) ([]byte, error) { return get(ctx, from) }
	}
	s.state.Store(&keys{})
	return s
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, input.WithoutQuotes(input.WithoutURL(err))
	}
	res, err := http.DefaultClient.Do(req) // uses HTTP_PROXY, because the issuer can be on another network
	if err != nil {
		return nil, input.WithoutQuotes(input.WithoutURL(err))
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as it counts
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d, not 200", res.StatusCode)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxKeySet))
}

// Load fetches the set now.
func (s *KeySet) Load(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	return s.load(ctx)
}

// load fetches; the caller has the turn.
func (s *KeySet) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	next := *s.state.Load()
	doc, err := s.fetch(ctx)
	var list []jose.JSONWebKey
	if err == nil {
		list, err = parseSet(doc)
	}
	s.log(&next, err)
	next.tried, next.err = s.opt.Now(), err
	if err == nil {
		next.list, next.loaded = list, next.tried
	}
	s.state.Store(&next)
	return err
}

// log reports the result of a fetch if the fetch before had another result. It does not report
// fetches before the first set: the start and the refusals do.
func (s *KeySet) log(last *keys, err error) {
	switch {
	case last.loaded.IsZero():
	case err == nil && last.err != nil:
		s.opt.Log.Info("read the key set of the tokens again")
	case err != nil && (last.err == nil || last.err.Error() != err.Error()):
		s.opt.Log.Error("the key set of the tokens cannot be read again; the last one stays in use, with keys that may have been withdrawn; tokens of other keys are answered 503", "error", err)
	}
}

// parseSet returns the keys that can verify a signature and ignores all others.
func parseSet(doc []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(doc, &set); err != nil {
		return nil, errors.New("is no JSON Web Key Set")
	}
	var list []jose.JSONWebKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if err := k.UnmarshalJSON(raw); err != nil || !k.Valid() || k.Use != "" && k.Use != "sig" {
			continue
		}
		switch k.Key.(type) {
		case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
			list = append(list, k)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("has no public key that verifies signatures")
	}
	return list, nil
}

// find returns the keys that a token names, or all keys if it names none.
func (s *KeySet) find(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	now, st := s.opt.Now(), s.state.Load()
	found := st.named(id)
	due := now.Sub(st.tried) >= s.opt.Pause
	switch {
	case len(found) > 0 && now.Sub(st.tried) >= s.maxAge+s.opt.Pause: // no token came for a while, and the key may have been withdrawn long ago
		if err := s.again(ctx, st, joinTime); errors.Is(err, ErrFetching) {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		found = s.state.Load().named(id) // the same ones if the fetch failed
	case len(found) > 0 && now.Sub(st.loaded) >= s.maxAge && due:
		select {
		case s.turn <- struct{}{}:
			go func() { // requests use the present keys meanwhile; the time limit ends the fetch
				defer func() { <-s.turn }()
				_ = s.load(context.WithoutCancel(ctx)) // kept in the state
			}()
		default:
		}
	case len(found) == 0 && due:
		if err := s.again(ctx, st, 0); errors.Is(err, ErrFetching) || err != nil && st.loaded.IsZero() {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		found = s.state.Load().named(id)
	}
	switch st = s.state.Load(); {
	case st.loaded.IsZero():
		return nil, ErrUnavailable
	case len(found) == 0 && st.err != nil: // the issuer may have added the key since
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ErrOutdated)
	case len(found) == 0:
		return nil, fmt.Errorf("%w: the token's key is not in the set", ErrUnknown)
	}
	return found, nil
}

// newer fetches the set again for a token that no key verifies, because an issuer
// can replace a key under the same id. It returns no keys if it is too early, or if
// nothing is newer.
func (s *KeySet) newer(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	st := s.state.Load()
	if s.opt.Now().Sub(st.tried) < s.opt.Pause {
		return nil, nil
	}
	switch err := s.again(ctx, st, 0); {
	case errors.Is(err, ErrFetching):
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err == nil:
		return s.state.Load().named(id), nil
	}
	return nil, nil // the state has the error
}

// again fetches the set, unless another call has done so since st. It returns ErrFetching if
// another call has been fetching it for all of wait.
func (s *KeySet) again(ctx context.Context, st *keys, wait time.Duration) error {
	select {
	case s.turn <- struct{}{}:
	default:
		over := time.NewTimer(wait)
		defer over.Stop()
		select {
		case s.turn <- struct{}{}:
		case <-over.C:
			return ErrFetching
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-s.turn }()
	if now := s.state.Load(); now != st {
		return now.err
	}
	return s.load(context.WithoutCancel(ctx)) // a caller that hangs up must not end the fetch
}

func (k *keys) named(id string) []jose.JSONWebKey {
	if id == "" {
		return k.list
	}
	var found []jose.JSONWebKey
	for i := range k.list {
		if k.list[i].KeyID == id {
			found = append(found, k.list[i])
		}
	}
	return found
}

// ready loads the set if that was not done.
func (s *KeySet) ready(ctx context.Context) error {
	st := s.state.Load()
	if !st.loaded.IsZero() {
		return nil
	}
	if s.opt.Now().Sub(st.tried) < s.opt.Pause {
		return fmt.Errorf("%w: %w", ErrUnavailable, st.err)
	}
	if err := s.again(ctx, st, 0); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
