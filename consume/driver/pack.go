package driver

import (
	"encoding/json"
	"fmt"

	"github.com/semel-go/semel/store"
)

// PackedHeaders is the header, or the attribute, into which an adapter packs the headers
// that its broker or its client would refuse or change. The adapter unpacks it when it
// takes the message, so that handlers and key sources see the headers as they were.
const PackedHeaders = "semel-headers"

// PackHeaders returns the value of PackedHeaders: a JSON list of pairs of name and value,
// in base64, so that they may be any bytes.
func PackHeaders(hs []store.Header) string {
	packed := make([][2][]byte, len(hs))
	for i, h := range hs {
		packed[i] = [2][]byte{[]byte(h.Name), []byte(h.Value)}
	}
	text, err := json.Marshal(packed)
	if err != nil {
		panic(err) // byte slices always have a JSON form
	}
	return string(text)
}

// UnpackHeaders returns the headers of a value of PackHeaders.
func UnpackHeaders(text string) ([]store.Header, error) {
	var packed [][2][]byte
	if err := json.Unmarshal([]byte(text), &packed); err != nil {
		return nil, fmt.Errorf("packed headers: %w", err)
	}
	hs := make([]store.Header, len(packed))
	for i, p := range packed {
		hs[i] = store.Header{Name: string(p[0]), Value: string(p[1])}
	}
	return hs, nil
}
