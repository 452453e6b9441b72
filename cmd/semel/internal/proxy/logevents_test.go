package proxy_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

// Each line about a request names it in the same way: by operation, tenant, hash of the key,
// method and path, and never by the key or the query.
func TestLog_LinesAboutRequests_HaveTheSameFields(t *testing.T) {
	t.Parallel()
	secret, path := hashKeysFile(t)
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		doc    string
		calls  int
		line   string
	}{
		"502 under retry":    {answers(502), "", 1, `level=INFO msg="the request failed, and its key is free again: a repeat is sent to the service again" CALL attempt=1 took=\S+ error="the service answered 502: the server failed"`},
		"502 under park":     {answers(502), "on-doubt: park\n", 1, `level=WARN msg="semel: parked" operation=http tenant=TENANT key=KEY policy=park attempt=1 took=\S+ error="semel: outcome unknown .*: the service answered 502: the server failed" method=POST path=/pay`},
		"no answer":          {broken, "", 1, `level=WARN msg="the upstream did not answer" code=upstream_lost CALL error=\S+`},
		"too many attempts":  {answers(502), "max-attempts: 1\n", 2, `level=WARN msg=refused CALL code=attempts_exhausted status=\d+ error=`},
		"no attempt is left": {answers(502), "max-attempts: 1\n", 2, `level=WARN msg="semel: failed" operation=http tenant=TENANT key=KEY policy=retry attempt=\d .* method=POST path=/pay`},
		"nothing was done":   {answers(429), "", 1, `level=DEBUG msg="semel: released" operation=http tenant=TENANT key=KEY policy=retry attempt=1 took=\S+ error="the service answered 429: it asks for the same request later" method=POST path=/pay`},
	} {
		s := play(t, c.answer, byTenant+"hash-keys-file: "+path+"\n"+c.doc)
		for range c.calls {
			s.send("POST", "/pay?q=canary", "{}", "Idempotency-Key", "canary-key", "X-Tenant", "canary-tenant")
		}
		k := store.Key{Operation: "http", Tenant: "canary-tenant", Value: "canary-key"}.Hashed(secret)
		want := strings.NewReplacer("CALL", "operation=http tenant=TENANT key=KEY method=POST path=/pay").Replace(c.line)
		want = strings.NewReplacer("TENANT", k.Tenant, "KEY", k.Short()).Replace(want)
		if log := s.log.String(); !regexp.MustCompile(want).MatchString(log) || strings.Contains(log, "canary") {
			t.Errorf("%s: no line %s, or a canary, in:\n%s", name, want, log)
		}
	}
}

// answers answers each request with a status.
func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}
