package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	idHeader        = "Webhook-Id"
	timestampHeader = "Webhook-Timestamp"
	signatureHeader = "Webhook-Signature"
)

// Tolerance is how far the timestamp of a request may be from the receiver's clock.
const Tolerance = 5 * time.Minute

// ErrSignature says that a request is not signed with the secret, or not now.
var ErrSignature = errors.New("webhook: the signature is not valid")

// sign is the signature of a message.
func sign(secret []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(append([]byte(id+"."+timestamp+"."), body...)) // it never fails
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Verify returns nil if a request has a signature by the secret, and its timestamp is
// within Tolerance of now. A receiver calls it with the headers and the body of the request.
func Verify(secret []byte, header http.Header, body []byte, now time.Time) error {
	timestamp := header.Get(timestampHeader)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %s is %q", ErrSignature, timestampHeader, timestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return fmt.Errorf("%w: the request is %v old", ErrSignature, age)
	}
	want := sign(secret, header.Get(idHeader), timestamp, body)
	for signature := range strings.FieldsSeq(header.Get(signatureHeader)) { // several while a secret is replaced
		if hmac.Equal([]byte(signature), []byte(want)) {
			return nil
		}
	}
	return ErrSignature
}
