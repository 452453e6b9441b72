package pulsartest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
)

// secret signs the tokens of secured servers.
const secret = "the secret of the tokens of tests"

// Secured is a server of the test's own that accepts only valid tokens: see [Token]. A
// role may do nothing before it is allowed to. Clients without a token may do everything.
func Secured(t testing.TB) *Server {
	t.Helper()
	const anonymous = "anonymous"
	s, err := newServer(map[string]string{
		"authenticationEnabled":   "true",
		"authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
		"tokenSecretKey":          "data:;base64," + base64.StdEncoding.EncodeToString([]byte(secret)),
		"authorizationEnabled":    "true",
		"anonymousUserRole":       anonymous,
		"superUserRoles":          anonymous,
	})
	need(t, err)
	proctest.RemoveAtEnd(t, s)
	return s
}

// Token is a JSON Web Token of a role for a secured server.
func Token(role string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256"}`)) + "." + encode([]byte(`{"sub":"`+role+`"}`))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}
