package address

import (
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/consume"
)

// order reads --order for a broker whose own rule is none. More adds rules of the broker.
func order(o *Options, more map[string]func(m *consume.Message) string) (func(m *consume.Message) string, error) {
	if name, ok := strings.CutPrefix(o.Order, "header:"); ok && name != "" {
		return func(m *consume.Message) string {
			v, _ := m.Header(name)
			return v
		}, nil
	}
	if f, ok := more[o.Order]; ok {
		return f, nil
	}
	return nil, &input.Error{Field: "--order", Value: o.Order, Want: "choose " + strings.Join(append(slices.Sorted(maps.Keys(more)), "header:NAME"), ", ")}
}

// none is a rule of order: no message waits for another.
func none(*consume.Message) string { return "" }
