package encrypted_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// BenchmarkDo compares new calls and replays with and without encryption. The result has
// 1 KiB, and the store costs almost nothing.
func BenchmarkDo(b *testing.B) {
	result := strings.Repeat("r", 1<<10)
	keys, err := encrypted.ReadKeyFile(write(b, "", line("a")), nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, o := range map[string]*semel.Options{"plain": nil, "encrypted": {Encryption: &encrypted.Cipher{Keys: keys}}} {
		do := func(b *testing.B, key func(n int) string) {
			guard, err := semel.New(memstore.New(nil), o)
			if err != nil {
				b.Fatal(err)
			}
			for n := 0; b.Loop(); n++ {
				call := semel.Call{Operation: "charge", Tenant: "ann", Key: key(n), Payload: semel.NoPayload()}
				if _, err := semel.Do(b.Context(), guard, call, func(context.Context, *semel.Execution) (string, error) { return result, nil }); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run("new/"+name, func(b *testing.B) { do(b, strconv.Itoa) })
		b.Run("replay/"+name, func(b *testing.B) { do(b, func(int) string { return "k" }) })
	}
}
