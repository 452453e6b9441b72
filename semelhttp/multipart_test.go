package semelhttp

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Some clients end the lines of a multipart body with a line feed only, and some write no line
// end after the last boundary. The boundary does not count then, either.
func TestPayload_MultipartWithLineFeeds_BoundaryDoesNotCount(t *testing.T) {
	hashed := func(boundary, body string) string {
		r := httptest.NewRequest("POST", "/upload", strings.NewReader(strings.ReplaceAll(body, "*", "--"+boundary)))
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		return sum(t, nil, r)
	}
	for name, body := range map[string]string{
		"without a last line end":  "*\nA: 1\n\nhello\n*--",
		"with a last line end":     "*\nA: 1\n\nhello\n*--\n",
		"with a preamble":          "ignored\r\n*\nA: 1\n\nhello\n*--",
		"with CRLF in a part":      "*\nA: 1\n\nhel\r\nlo\n*--",
		"with CRLF after one line": "*\r\nA: 1\r\n\r\nhel\nlo\r\n*--",
	} {
		if hashed("one", body) != hashed("two", body) {
			t.Errorf("%s: a repeat with another boundary has another payload", name)
		}
		if hashed("one", body) == hashed("one", strings.Replace(body, "hel", "HEL", 1)) {
			t.Errorf("%s: the content of the part does not count", name)
		}
	}
	const cut = "*\nA: 1\n\nhello\n*\nB: "
	if hashed("one", cut+"1") == hashed("one", cut+"2") {
		t.Error("a part that is cut off in its head does not count")
	}
}
