package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/optionstest"
	"github.com/semel-go/semel/internal/pagetest"
)

// model is kong's model of the command line.
func model(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := kong.New(new(cli), kong.Name("semel"))
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

func TestReference_Proxy_IsWhatTheCodeSays(t *testing.T) {
	app := model(t)
	for _, n := range app.Children {
		if n.Name != "proxy" {
			continue
		}
		var b strings.Builder
		b.WriteString("# `semel proxy`\n\n" + optionstest.Generated + optionstest.Prose(n.Help) + "\n\n")
		b.WriteString("The [options](#options) are at the end. [The sidecar in production](../sidecar.md) helps to choose them.\n\n")
		optionstest.WriteDetail(&b, n.Detail, 2)
		b.WriteString("## Options\n\nEach option can also be a variable, as `SEMEL_` and its name in capitals, with `_` for `-`. All but `--audit`, `--config`, `--help`, `--json`, `--log-level` and `--version` can be in the file of `--config`, by their names.\n\n")
		optionstest.WriteOptions(&b, n, 3)
		b.WriteString(global(app))
		pagetest.Check(t, "docs/reference/proxy.md", strings.TrimSpace(b.String())+"\n")
	}
}

func TestReference_Commands_AreWhatTheCodeSays(t *testing.T) {
	app := model(t)
	var b strings.Builder
	b.WriteString("# Commands of `semel`\n\n" + optionstest.Generated)
	b.WriteString("[`semel proxy`](proxy.md), and [`semel deliver` and `semel outbox publish`](deliver.md), have pages of their own.\n\n")
	b.WriteString("Without `--store`, `--encryption-keys`, `--hash-keys-file`, `--audit` or `--json` a command reads the variable `SEMEL_STORE`, `SEMEL_ENCRYPTION_KEYS`, `SEMEL_HASH_KEYS_FILE`, `SEMEL_AUDIT` or `SEMEL_JSON`. So in the container of a proxy it opens the proxy's store.\n\n")
	b.WriteString("| command | purpose |\n|---|---|\n")
	var sections strings.Builder
	for _, n := range app.Leaves(true) {
		path := n.FullPath()
		anchor := strings.ReplaceAll(path, " ", "-")
		switch path {
		case "semel proxy":
			anchor = "proxy.md"
		case "semel deliver":
			anchor = "deliver.md"
		case "semel outbox publish":
			anchor = "deliver.md#semel-outbox-publish"
		default:
			anchor = "#" + anchor
			section(&sections, n)
		}
		fmt.Fprintf(&b, "| [`%s`](%s) | %s |\n", path, anchor, pagetest.Cell(optionstest.Prose(n.Help)))
	}
	b.WriteString("\n" + global(app) + sections.String())
	pagetest.Check(t, "docs/reference/commands.md", strings.TrimSpace(b.String())+"\n")
}

// section writes a command.
func section(b *strings.Builder, n *kong.Node) {
	fmt.Fprintf(b, "## `%s`\n\n%s\n\n", n.FullPath(), optionstest.Prose(n.Help))
	var usage []string
	for _, p := range n.Positional {
		usage = append(usage, p.Summary())
	}
	fmt.Fprintf(b, "```text\n%s [options]\n```\n\n", strings.Join(append([]string{n.FullPath()}, usage...), " "))
	for _, p := range n.Positional {
		fmt.Fprintf(b, "- `%s`: %s\n", p.Summary(), optionstest.Prose(p.Help))
	}
	if len(n.Positional) > 0 {
		b.WriteString("\n")
	}
	optionstest.WriteOptions(b, n, 3)
	optionstest.WriteDetail(b, n.Detail, 3)
}

// global has the options of every command.
func global(app *kong.Application) string {
	var b strings.Builder
	b.WriteString("## Options of every command\n\n")
	optionstest.WriteOptions(&b, app.Node, 3)
	return b.String()
}

// The default that the page names is the one that applies: an option with it changes
// nothing.
func TestProxy_DefaultGivenAsOption_ChangesNothing(t *testing.T) {
	base := []string{"proxy", "--upstream", "http://127.0.0.1:3000", "--scope", "single"}
	want := resolved(t, base)
	checked := 0
	for _, n := range model(t).Children {
		if n.Name != "proxy" {
			continue
		}
		for _, f := range n.Flags {
			o := optionstest.FromFlag(f)
			switch {
			case f.Name == "help":
			case o.IsValue:
				checked++
				if got := resolved(t, append(base, "--"+f.Name+"="+o.Default)); got != want {
					t.Errorf("the default of --%s is not %s:\n%s\n%s", f.Name, o.Default, got, want)
				}
			case o.Default == "off":
				if got := resolved(t, append(base, "--"+f.Name+"=false")); got != want {
					t.Errorf("--%s is not off by default:\n%s\n%s", f.Name, got, want)
				}
			case o.Default == "" && strings.Contains(f.Help, "default"):
				t.Errorf("--%s: the default in %q is not found; write (default VALUE) or (default: WORDS)", f.Name, f.Help)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d defaults were checked", checked)
	}
}

// resolved is the configuration of a command line of proxy.
func resolved(t *testing.T, args []string) string {
	t.Helper()
	var c cli
	parser, err := kong.New(&c, kong.Name("semel"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	p, err := c.Proxy.plan(nil)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	text, err := json.Marshal(p.config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
