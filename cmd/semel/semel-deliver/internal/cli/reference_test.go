package cli

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/optionstest"
	"github.com/semel-go/semel/internal/pagetest"
)

func TestReference_Deliver_IsWhatTheCodeSays(t *testing.T) {
	var b strings.Builder
	b.WriteString("# `semel deliver` and `semel outbox publish`\n\n" + optionstest.Generated)
	b.WriteString("Both are the program `semel-deliver`, which `semel` starts. [Messages for services in any language](../deliver.md) and [the outbox](../outbox.md) explain them. Each option can also be a variable, as `SEMEL_` and its name in capitals, with `_` for `-`.\n\n")
	for _, c := range []struct {
		name, description string
		flags             any
	}{{"semel deliver", description, new(options)}, {"semel outbox publish", publishDescription, new(publishOptions)}} {
		parser, err := kong.New(c.flags, kong.Name(c.name))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("## `" + c.name + "`\n\n" + optionstest.Prose(c.description) + "\n\n")
		optionstest.WriteDetail(&b, parser.Model.Detail, 3)
		b.WriteString("### Options of `" + c.name + "`\n\n")
		optionstest.WriteOptions(&b, parser.Model.Node, 4)
	}
	pagetest.Check(t, "docs/reference/deliver.md", strings.TrimSpace(b.String())+"\n")
}
