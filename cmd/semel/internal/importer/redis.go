package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
)

// Redis is the keys of a Redis database as rows.
type Redis struct {
	Client *redis.Client // of a server that has all keys
	Match  string        // which keys, as SCAN takes it
	Name   *KeyName      // how the parts of a row stand in a key's name
	Value  RedisValue    // the content of a string; a hash holds the fields of a row
	// Rename has columns by the members or fields that hold them. The member with a
	// column's own name is not read then.
	Rename map[string]string
}

// RedisValue says what a string of Redis holds.
type RedisValue string

// The kinds of values.
const (
	ValueJSON RedisValue = "json" // an object with the columns of a row
	ValueBody RedisValue = "body" // the body of the answer
	ValueNone RedisValue = "none" // nothing of interest
)

// KeyName finds parts of a row in a name, such as "idem:{tenant}:{key}".
type KeyName struct {
	pattern *regexp.Regexp
	text    string
}

var placeholder = regexp.MustCompile(`\{[a-z_]*\}`)

// ParseKeyName reads a pattern in which {operation}, {tenant} and {key} stand for parts.
// All parts but the last end at the text that follows them.
func ParseKeyName(text string) (*KeyName, error) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	rest, seen := text, []string{}
	for at := placeholder.FindStringIndex(rest); at != nil; at = placeholder.FindStringIndex(rest) {
		name := rest[at[0]+1 : at[1]-1]
		if !slices.Contains([]string{"operation", "tenant", "key"}, name) || slices.Contains(seen, name) {
			return nil, fmt.Errorf("{%s} is no part, or is there twice; there are {operation}, {tenant} and {key}", name)
		}
		seen = append(seen, name)
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		rest = rest[at[1]:]
		some := `.+?`
		if rest == "" {
			some = `.+`
		}
		b.WriteString("(?P<" + name + ">" + some + ")")
	}
	if !slices.Contains(seen, "key") {
		return nil, errors.New("has no {key}, such as in idem:{tenant}:{key}")
	}
	b.WriteString(regexp.QuoteMeta(rest) + `\z`)
	pattern, err := regexp.Compile(b.String())
	return &KeyName{pattern, text}, err
}

// parts are the parts of a name.
func (k *KeyName) parts(name string) (Row, error) {
	m := k.pattern.FindStringSubmatch(name)
	if m == nil {
		return nil, fmt.Errorf("the name does not fit %s", k.text)
	}
	row := Row{}
	for i, part := range k.pattern.SubexpNames() {
		if part != "" {
			row[part] = m[i]
		}
	}
	return row, nil
}

// scanned is how many keys are read at a time.
const scanned = 256

// Rows is a Source. Redis may return a key twice.
func (r *Redis) Rows(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := r.check(ctx); err != nil {
			yield(nil, fmt.Errorf("--from: %w", err))
			return
		}
		for cursor := uint64(0); ; {
			names, next, err := r.Client.Scan(ctx, cursor, r.Match, scanned).Result()
			if err != nil {
				yield(nil, fmt.Errorf("--from: %w", storeurl.ExplainRedis(err)))
				return
			}
			if err := r.read(ctx, names, yield); err != nil {
				if !errors.Is(err, errStopped) {
					yield(nil, err)
				}
				return
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// check refuses a node of a Redis Cluster, because the other nodes have the rest of the keys.
func (r *Redis) check(ctx context.Context) error {
	info, err := r.Client.Info(ctx, "cluster").Result()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "NOPERM"):
		user := cmp.Or(r.Client.Options().Username, "default")
		return fmt.Errorf("this user cannot see whether the server is a node of a Redis Cluster, which has only some of the keys: %w; allow it with: redis-cli ACL SETUSER %s +info", err, user)
	case err != nil:
		return storeurl.ExplainRedis(err)
	case strings.Contains(info, "cluster_enabled:1"):
		return errors.New("the server is a node of a Redis Cluster, and has only some of the keys; for each master, write its keys to a file with: redis-cli -h HOST -p PORT --rdb dump.rdb, start a redis-server without a cluster on that file, and import from it")
	}
	return nil
}

// errStopped ends a walk whose reader wants no more.
var errStopped = errors.New("stopped")

// read yields the rows of some keys, which it reads in two round trips.
func (r *Redis) read(ctx context.Context, names []string, yield func(Row, error) bool) error {
	if len(names) == 0 {
		return nil
	}
	kinds, lives := make([]*redis.StatusCmd, len(names)), make([]*redis.DurationCmd, len(names))
	if _, err := r.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			kinds[i], lives[i] = p.Type(ctx, name), p.PTTL(ctx, name)
		}
		return nil
	}); err != nil {
		return err
	}
	now := time.Now()
	values := make([]redis.Cmder, len(names))
	_, err := r.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			switch kinds[i].Val() {
			case "string":
				values[i] = p.Get(ctx, name)
			case "hash":
				values[i] = p.HGetAll(ctx, name)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for i, name := range names {
		if kinds[i].Val() == "none" || values[i] != nil && errors.Is(values[i].Err(), redis.Nil) {
			continue // it has expired meanwhile
		}
		row, err := r.row(name, values[i])
		if err != nil {
			err = &RowError{Name: name, Err: err}
		} else if life := lives[i].Val(); life > 0 && isMissing(row["expires"]) {
			row["expires"] = now.Add(life)
		}
		if !yield(row, err) {
			return errStopped
		}
	}
	return nil
}

// row makes the row of a key.
func (r *Redis) row(name string, value redis.Cmder) (Row, error) {
	row, err := r.Name.parts(name)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	switch v := value.(type) {
	case *redis.MapStringStringCmd:
		for field, text := range v.Val() {
			fields[field] = text
		}
	case *redis.StringCmd:
		switch r.Value {
		case ValueBody:
			row["body"] = v.Val()
			return row, nil
		case ValueNone:
			return row, nil
		}
		if fields, err = members([]byte(v.Val())); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("it is neither a string nor a hash")
	}
	return row, r.merge(row, fields)
}

// merge adds the columns among the fields of a value to a row, which has the parts of the
// name. A part and a field with another text are an error.
func (r *Redis) merge(row Row, fields map[string]any) error {
	renamed := slices.Collect(maps.Values(r.Rename))
	for field, value := range fields { // there may be more than the columns
		column, ok := r.Rename[field]
		switch {
		case !ok && (slices.Contains(renamed, field) || !slices.Contains(Columns(), field)):
			continue
		case !ok:
			column = field
		}
		part, inName := row[column]
		if !inName {
			row[column] = value
			continue
		}
		if text, err := textOf(value); err != nil || text != "" && text != part {
			return fmt.Errorf("%s: the name of the key in Redis and the value differ; correct the value, or leave its member unread with --field %[1]s=NONE, if no member is called NONE", column)
		}
	}
	return nil
}

// members are the members of a JSON object. An object or a list in it stays JSON.
func members(doc []byte) (map[string]any, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(doc, &raw); err != nil || raw == nil {
		return nil, errors.New("the value is no JSON object; --value body takes it as the answer, --value none leaves it out")
	}
	fields := map[string]any{}
	for name, value := range raw {
		switch value[0] {
		case '{', '[':
			fields[name] = []byte(value)
		case 'n':
			fields[name] = nil
		case '"':
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, err
			}
			fields[name] = text
		default: // a number, true or false
			fields[name] = json.Number(value)
		}
	}
	return fields, nil
}
