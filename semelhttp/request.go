package semelhttp

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
)

// errConsumed means that an outer handler has read the body.
var errConsumed = errors.New("an outer handler has read the request body; put this handler outside of it")

// newCall makes the call of a request. It reads the body into s, which the caller
// closes. Protected is false if the request has no key and may pass. The tenant is
// checked before the body is read, so that an unknown client cannot send one.
func (c *config) newCall(r *http.Request, tenant TenantFunc, s *spool) (call semel.Call, protected bool, p *Problem) {
	key, found, err := findKey(r.Header, c.KeyHeaders, c.Strict)
	switch {
	case err != nil:
		return call, true, keyMalformed(err)
	case !found && c.KeyFrom == nil && c.Optional:
		return call, false, nil
	case !found && c.KeyFrom == nil:
		return call, true, problem(CodeKeyMissing, nil)
	}
	call, p = c.identify(r, tenant)
	if p != nil {
		return call, true, p
	}
	payload, p := c.readPayload(r, s)
	if p != nil {
		return call, true, p
	}
	if !found {
		key, err = c.KeyFrom(r, s.reader())
		switch {
		case err != nil:
			return call, true, problem(CodePayloadMalformed, err)
		case key == "" && c.Optional:
			return call, false, nil
		case key == "":
			return call, true, problem(CodeKeyMissing, nil)
		}
		if err := checkKey(key); err != nil {
			return call, true, keyMalformed(err)
		}
	}
	call.Key, call.Payload, call.Wait = key, payload, c.wait(r.Header)
	return call, true, nil
}

// readPayload spools the body and makes the payload, by Options.Payload or as a
// hash of the request.
func (c *config) readPayload(r *http.Request, s *spool) (semel.Payload, *Problem) {
	if c.Payload == nil {
		h := newFingerprint(r)
		if p := c.spoolBody(r, s, h); p != nil {
			return semel.Payload{}, p
		}
		return semel.Digest(fingerprintAlg, h.Sum(nil)), nil
	}
	if p := c.spoolBody(r, s, io.Discard); p != nil {
		return semel.Payload{}, p
	}
	payload, err := c.Payload(r, s.reader())
	if err != nil {
		return payload, problem(CodePayloadMalformed, err)
	}
	return payload, nil
}

func (c *config) spoolBody(r *http.Request, s *spool, h io.Writer) *Problem {
	err := s.fill(r.Body, r.ContentLength, c.MaxBody, c.TempDir, h)
	switch {
	case err != nil:
		return c.bodyProblem(err)
	case s.size == 0 && (r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil):
		return problem(CodeMisconfigured, errConsumed)
	}
	return nil
}

// wait is how long this request may wait: Options.Wait, or less if the client
// prefers that (RFC 7240).
func (c *config) wait(h http.Header) time.Duration {
	if c.Wait == 0 {
		return 0
	}
	for _, line := range h["Prefer"] {
		for part := range strings.SplitSeq(line, ",") {
			preference, _, _ := strings.Cut(part, ";")
			name, value, ok := strings.Cut(preference, "=")
			if !ok || !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil {
				return min(c.Wait, time.Duration(n)*time.Second)
			}
		}
	}
	return c.Wait
}
