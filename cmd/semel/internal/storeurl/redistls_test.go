package storeurl_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// The user of the rediss URL has only the rights that package redisstore needs, and
// the system trusts the certificate authority of the server.
func TestRedis_TLSAndACLUser_Opens(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("SKIPPED, NOT TESTED: the system's roots are not those of SSL_CERT_FILE here")
	}
	ca := redistest.Trusted(t)
	good := redistest.StartTLS(t, ca, []string{"127.0.0.1"}, "--tls-auth-clients", "no")
	other := redistest.StartTLS(t, ca, []string{"redis.example"}, "--tls-auth-clients", "no")
	for _, srv := range []*redistest.Server{good, other} {
		c := redis.NewClient(&redis.Options{Addr: srv.Addr()})
		defer c.Close()
		err := errors.Join(c.Do(t.Context(), "acl", "setuser", "app", "on", ">pass/word", "~app:*", "+@connection", "+info", "+evalsha", "+eval", "+time", "+get", "+set", "+msetnx").Err(),
			c.Do(t.Context(), "acl", "setuser", "default", "off").Err())
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := parse(t, "rediss://app:pass%2Fword@"+good.TLSAddr()+"/0?semel-prefix=app:").Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p := store.Proposal{Key: store.Key{Operation: "o", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Lease: time.Minute}
	if f, err := h.Claim(t.Context(), p); err != nil || !f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	for name, c := range map[string]struct{ url, says string }{
		"a wrong password":               {"rediss://app:hunter2@" + good.TLSAddr() + "/0?semel-prefix=app:", "WRONGPASS"},
		"no user":                        {"rediss://" + good.TLSAddr() + "/0?semel-prefix=app:", "NOAUTH"},
		"another server's certificate":   {"rediss://app:pass%2Fword@" + other.TLSAddr() + "/0?semel-prefix=app:", "certificate"},
		"no TLS where the server has it": {"redis://app:pass%2Fword@" + good.TLSAddr() + "/0?semel-prefix=app:", "EOF"},
	} {
		h, err := parse(t, c.url+"&max_retries=-1").Open(t.Context())
		if err == nil {
			_ = h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "pass/word") {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
}
