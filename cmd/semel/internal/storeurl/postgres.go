package storeurl

import (
	"context"
	"net/url"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store/pgstore"
)

// postgresStore is a parsed URL of PostgreSQL: the URL for the client, and the
// options of the store from its query.
type postgresStore struct {
	url string
	opt pgstore.Options
}

func parsePostgres(text, where string) (*postgresStore, error) {
	u, err := url.Parse(text)
	if err != nil { // its message would show the password
		scheme, _, _ := strings.Cut(text, ":")
		return nil, &input.Error{Field: where, Value: scheme + "://…", Want: "is not a URL; write postgres://USER@HOST:PORT/DATABASE, with special characters as %XX"}
	}
	p := &postgresStore{url: text}
	q := u.Query()
	for name, values := range q {
		if !strings.HasPrefix(name, ours) {
			continue
		}
		switch value := values[len(values)-1]; {
		case name == "semel-schema":
			p.opt.Schema = value
		case name == "semel-notify" && value == "on":
			p.opt.Notify = true
		default:
			return nil, &input.Error{Field: where, Value: name, Want: "is no option of the store; there are semel-schema=NAME and semel-notify=on"}
		}
		q.Del(name) // the server would not know it
		u.RawQuery = q.Encode()
		p.url = u.String()
	}
	return p, nil
}

func (p *postgresStore) open(ctx context.Context, existing bool) (Handle, error) {
	opt := p.opt
	opt.NoMigrate = existing
	s, err := pgstore.Open(ctx, p.url, &opt)
	if err != nil {
		return nil, err
	}
	return s, nil
}
