package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

type doctorCmd struct {
	Store string `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store to check: sqlite:PATH, postgres://USER@HOST/DATABASE or redis://HOST:PORT/0 (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*doctorCmd) Help() string {
	return `Opens an existing store, checks for settings with which it can lose records, and reads all records. The exit code is 1 if there is a problem.

Examples:

    semel doctor --store sqlite:/var/lib/semel.db
    semel doctor --store sqlite:semel.db --json
`
}

// diagnosis is the JSON of semel doctor.
type diagnosis struct {
	Store    string         `json:"store"`
	OK       bool           `json:"ok"`
	Records  map[string]int `json:"records"` // by state
	Lapsed   int            `json:"lapsed"`  // claims whose holder died, and that no sweep has recovered
	Problems []string       `json:"problems"`
}

func (c *doctorCmd) Run(ctx context.Context, e *env) error {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	d := diagnosis{Store: u.String(), Records: map[string]int{}, Problems: []string{}}
	err = d.examine(ctx, u)
	if input.Is(err) {
		return err
	}
	d.OK = err == nil
	d.Problems = append(d.Problems, input.Lines(err)...)
	return errors.Join(err, d.print(e))
}

func (d *diagnosis) print(e *env) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(d)
	}
	var b strings.Builder
	for s := store.Started; s.Valid(); s++ {
		if n := d.Records[s.String()]; n > 0 {
			fmt.Fprintf(&b, "%s: %d %s\n", d.Store, n, s)
		}
	}
	if d.Lapsed > 0 {
		fmt.Fprintf(&b, "%s: %d of them lapsed; semel sweep recovers them\n", d.Store, d.Lapsed)
	}
	if d.OK {
		fmt.Fprintf(&b, "%s: ok\n", d.Store)
	}
	_, err := io.WriteString(e.stdout, b.String())
	return err
}

func (d *diagnosis) examine(ctx context.Context, u storeurl.URL) (err error) {
	h, err := u.OpenExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	var errs []error
	if c, ok := store.As[store.Checker](h); ok {
		errs = append(errs, c.Check(ctx))
	}
	if l, ok := store.As[store.Lister](h); ok {
		for f, err := range l.List(ctx, store.Filter{}) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			d.Records[f.Record.State.String()]++
			if f.Record.Lapsed(f.Now) {
				d.Lapsed++
			}
		}
	}
	return errors.Join(errs...)
}
