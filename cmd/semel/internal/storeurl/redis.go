package storeurl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store/redisstore"
)

// redisStore is a parsed URL of Redis: the URL for the client, and the options of
// the store from its query.
type redisStore struct {
	url string
	opt redisstore.Options
}

// ours begins the names of those options.
const ours = "semel-"

const redisOptions = "semel-prefix=TEXT, semel-replicas=N, semel-fsync, semel-allow-eviction, semel-allow-park"

func parseRedis(text, where string) (*redisStore, error) {
	u, err := url.Parse(text)
	if err != nil { // its message would show the password
		return nil, &input.Error{Field: where, Value: "redis://…", Want: "is not a URL; write redis://USER:PASSWORD@HOST:PORT/0, with special characters as %XX"}
	}
	r := &redisStore{}
	q := u.Query()
	for name, values := range q {
		if !strings.HasPrefix(name, ours) {
			continue
		}
		q.Del(name)
		if err := r.set(name, values[len(values)-1]); err != nil {
			return nil, &input.Error{Field: where, Value: name + "=" + values[len(values)-1], Want: err.Error()}
		}
	}
	u.RawQuery = q.Encode()
	r.url = u.String()
	return r, nil
}

// wanted is why an option will not do.
type wanted string

func (w wanted) Error() string { return string(w) }

func (r *redisStore) set(name, value string) error {
	var flag *bool
	switch name {
	case "semel-prefix":
		r.opt.Prefix = value
		return nil
	case "semel-replicas":
		n, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return wanted("must be a number from 0 to 255")
		}
		r.opt.Replicas = int(n)
		return nil
	case "semel-fsync":
		flag = &r.opt.Fsync
	case "semel-allow-eviction":
		flag = &r.opt.AllowEviction
	case "semel-allow-park":
		flag = &r.opt.AllowPark
	default:
		return wanted("is no option of the store; there are " + redisOptions)
	}
	is, err := strconv.ParseBool(value)
	if value == "" {
		is, err = true, nil
	}
	if err != nil {
		return wanted("must be true or false")
	}
	*flag = is
	return nil
}

func (r *redisStore) open(ctx context.Context) (Handle, error) {
	s, err := redisstore.Open(ctx, r.url, &r.opt)
	if err != nil {
		return nil, ExplainRedis(err)
	}
	return s, nil
}

// ExplainRedis adds to the error of a connection to Redis how to see whether a server
// listens. It returns any other error as it is, and nil for nil.
func ExplainRedis(err error) error {
	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || dial.Op != "dial" || dial.Addr == nil {
		return err
	}
	host, port, serr := net.SplitHostPort(dial.Addr.String())
	if serr != nil { // a Unix socket
		return fmt.Errorf("%w; see whether the server listens there with: redis-cli -s %s ping", err, dial.Addr)
	}
	return fmt.Errorf("%w; see whether the server listens there with: redis-cli -h %s -p %s ping", err, host, port)
}
