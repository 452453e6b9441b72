package cli

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/lapsed"
	"github.com/semel-go/semel/store"
)

// isHTTP reports whether package semelhttp hashed the request of a record, so that its
// answer has a status.
func isHTTP(r *store.Record) bool { return strings.HasPrefix(r.Fingerprint.Alg, "semelhttp/") }

// nextStep says what an operator can do about a call in doubt, with commands that can be
// pasted into a shell. Empty for any other record.
func (c *storeFlag) nextStep(r *store.Record) []string {
	if r.State != store.Unknown {
		return nil
	}
	flags := fmt.Sprintf(" --tenant %s%s --fence %d", shellWord(r.Key.Tenant), c.flags(), r.Fence)
	if name, ok := strings.CutSuffix(r.Key.Operation, lapsed.SagaSuffix); ok && lapsed.IsSaga(r.Key) {
		end := fmt.Sprintf(" %s %s%s --reason TEXT", shellWord(name), shellWord(r.Key.Value), flags)
		return []string{"find out which steps happened, then one of (semel saga skip --help has more):", "semel saga retry" + end, "semel saga back" + end}
	}
	start := fmt.Sprintf("semel inspect resolve %s --operation %s%s --reason TEXT --verdict ", shellWord(r.Key.Value), shellWord(r.Key.Operation), flags)
	answer := "--codec json --body-file result.json"
	if isHTTP(r) {
		answer = "--status 201 --header 'Content-Type: application/json' --body-file answer.json"
	}
	return []string{
		"find out in the other system whether it took effect, then one of:",
		start + "happened " + answer, start + "did-not-happen", start + "failed",
	}
}

// flags are the flags that name the store again.
func (c *storeFlag) flags() string {
	var s string
	if c.Store != "sqlite:semel.db" {
		s += " --store " + shellWord(storeName(c.Store))
	}
	if c.Keys != "" {
		s += " --encryption-keys " + shellWord(c.Keys)
	}
	return s
}

// shellWord is s as one word of a shell.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if s != "" && s[0] != '-' && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
