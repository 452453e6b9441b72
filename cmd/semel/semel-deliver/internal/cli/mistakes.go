package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/event"
	"github.com/semel-go/semel/internal/httpname"
)

// mistakes are the mistakes in the options of a command, of which it reports all.
type mistakes struct{ errs []error }

func (m *mistakes) bad(flag string, value any, want string, args ...any) {
	m.errs = append(m.errs, &input.Error{Field: "--" + flag, Value: fmt.Sprint(value), Want: fmt.Sprintf(want, args...)})
}

func (m *mistakes) failed(err error) {
	if err != nil {
		m.errs = append(m.errs, err)
	}
}

// header reads lines of the form "Name: value". Refuse reports a name that this program
// sets itself.
func (m *mistakes) header(flag string, lines []string, refuse func(flag, name string)) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); !ok || !httpname.IsToken(name) || !event.IsHeaderValue(value) {
			m.bad(flag, name, `write "Name: value"`) // the value may be a secret
			continue
		}
		refuse(flag, name)
		h.Add(name, value)
	}
	return h
}

// url is an absolute http or https URL; nil if the text is empty or a mistake.
func (m *mistakes) url(flag, text string) *url.URL {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" || u.User != nil {
		if strings.ContainsAny(text, "@?#") {
			text = "" // it may contain a secret
		}
		m.bad(flag, text, "write an absolute URL of http or https without a user, such as http://127.0.0.1:3000/events; credentials go into --header")
		return nil
	}
	return u
}

// span is a duration within its limits.
func (m *mistakes) span(flag string, d config.Duration, least, most time.Duration) time.Duration {
	if time.Duration(d) < least || time.Duration(d) > most {
		m.bad(flag, d, "must be from %v to %v", config.Duration(least), config.Duration(most))
	}
	return time.Duration(d)
}

func (m *mistakes) count(flag string, n, least, most int64) {
	if n < least || n > most {
		m.bad(flag, n, "must be from %d to %d", least, most)
	}
}

func (m *mistakes) address(flag, addr string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok && path != "" {
		return
	}
	_, port, err := net.SplitHostPort(addr)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		m.bad(flag, addr, "write host:port, such as 127.0.0.1:9090, or unix:/run/semel.sock")
	}
}

// tlsFiles checks a certificate and its key. Secure says that a URL has TLS.
func (m *mistakes) tlsFiles(prefix string, f tlsfile.Files, secure bool) {
	if !secure {
		for _, part := range f.Parts() {
			m.bad(prefix+"-"+part, "", "has no effect, because nothing is sent by TLS; write an https: URL, or leave the file out")
		}
		return
	}
	if (f.Cert == "") != (f.Key == "") {
		m.bad(prefix+"-cert", f.Cert, "a certificate and its key belong together; give %s-cert and %s-key", prefix, prefix)
		return
	}
	if _, err := program.TLSFiles(f, nil); err != nil {
		m.bad(prefix+"-"+tlsfile.PartOf(err), "", "cannot be used: %v", err)
	}
}

func isHTTPS(u *url.URL) bool { return u != nil && u.Scheme == "https" }
