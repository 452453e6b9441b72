package main

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// plainRedis is the URL of a server without the store's own options.
func plainRedis(u url.URL) string {
	q := u.Query()
	for name := range q {
		if strings.HasPrefix(name, "semel-") {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// unlinkKeys removes the keys with a prefix, which has nothing that a pattern
// would take for more than itself.
func unlinkKeys(ctx context.Context, server, prefix string) error {
	o, err := redis.ParseURL(server)
	if err != nil { // its message would show the password
		return errors.New("the client cannot read --store")
	}
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	for at, more := uint64(0), true; more && err == nil; more = at != 0 {
		var names []string
		if names, at, err = c.Scan(ctx, at, prefix+"*", 1000).Result(); err == nil && len(names) > 0 {
			err = c.Unlink(ctx, names...).Err()
		}
	}
	return errors.Join(err, c.Close())
}
