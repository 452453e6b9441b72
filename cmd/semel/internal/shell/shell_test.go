package shell_test

import (
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/shell"
)

func TestWord_EachIsOneWord(t *testing.T) {
	for text, want := range map[string]string{
		"order-17": "order-17", "": "''", "POST /pay": "'POST /pay'", "$(id)": "'$(id)'", "it's": `'it'\''s'`, "-x": "'-x'", "postgres://app@db/shop": "postgres://app@db/shop",
	} {
		if got := shell.Word(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestCommand_ArgumentWithDash_ComesLast(t *testing.T) {
	for want, got := range map[string]string{
		"semel saga show order o1 --tenant ann":          shell.Command("semel saga show", []string{"order", "o1"}, shell.Flag("tenant", "ann")),
		"semel saga show --tenant='-ann' -- order '-o1'": shell.Command("semel saga show", []string{"order", "-o1"}, shell.Flag("tenant", "-ann")),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
