package outbox

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/store"
)

// The lengths of a CallHash, and of its part that logs show.
const (
	callDigits  = 16
	shownDigits = 8
)

// CallHash is the hash by which the messages of a call are found: the first 16 hexadecimal
// digits of the digest of k, the key of the call's record. Logs show the first 8 of them
// (store.Key.Short), which two of many calls can have in common.
func CallHash(k store.Key) string {
	d := k.Digest()
	return hex.EncodeToString(d[:callDigits/2])
}

// ShortCall is the part of a CallHash that logs show.
func ShortCall(hash string) string { return hash[:min(len(hash), shownDigits)] }

// CallOf is the CallHash of the call whose handler has the context ctx. In a step it names
// the call of the step. Empty: ctx belongs to no handler. It is for authors of stores.
func CallOf(ctx context.Context) string {
	if bridge.RunningCall == nil { // the program does not link package semel
		return ""
	}
	k, ok := bridge.RunningCall(ctx)
	if !ok {
		return ""
	}
	return CallHash(k)
}

// CallRange is the first and the last CallHash that begin with the digits of hash, of which
// there are 8 to 16. It is for authors of stores.
func CallRange(hash string) (first, last string, err error) {
	digits := strings.ToLower(hash)
	if n := len(digits); n < shownDigits || n > callDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", "", fmt.Errorf("outbox: %q is no hash of a call; it has %d to %d hexadecimal digits, such as the %[2]d that logs show", hash, shownDigits, callDigits)
	}
	rest := callDigits - len(digits)
	return digits + strings.Repeat("0", rest), digits + strings.Repeat("f", rest), nil
}
