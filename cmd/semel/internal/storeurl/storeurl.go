// Package storeurl opens the store that --store names.
package storeurl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/sqlitestore"
)

// Handle is an open store. Close it.
type Handle interface {
	store.Store
	Close() error
}

// URL names a store. The zero URL is invalid.
type URL struct {
	kind   kind
	text   string // the path of the SQLite file; or the whole URL, its password too
	where  string
	redis  *redisStore
	dynamo *dynamoStore

	postgres *postgresStore
	cipher   *encrypted.Cipher // nil: records are not encrypted
	role     Role
}

// Role is what a command needs a store for. It decides what to do if there is none.
type Role uint8

// The roles. The zero Role is a store of records, of semel proxy or of a service.
const (
	Source     Role = iota + 1 // of a copy: a store that a command made would be empty
	OutboxOwn                  // of an outbox: a service writes it
	OutboxSeen                 // the same, for a command that is about the messages that are there
	SagasSeen                  // for a command that is about the sagas that are there
)

// For is the store in a role.
func (u URL) For(r Role) URL {
	u.role = r
	return u
}

type kind uint8

const (
	inMemory kind = iota + 1
	inSQLite
	inPostgres
	inRedis
	inDynamo
)

// Parse reads a URL; where is for the messages of errors.
func Parse(text, where string) (URL, error) {
	u := URL{text: text, where: where}
	scheme, path, _ := strings.Cut(text, ":")
	switch {
	case scheme == "memory" && path == "" && text != scheme:
		u.kind = inMemory
		return u, nil
	case scheme == "sqlite" && path != "" && !strings.ContainsAny(path, "?\x00") && !strings.HasPrefix(path, "//"):
		u.kind, u.text = inSQLite, path
		return u, nil
	case (scheme == "postgres" || scheme == "postgresql") && strings.HasPrefix(path, "//"):
		var err error
		u.kind = inPostgres
		u.postgres, err = parsePostgres(text, where)
		return u, err
	case (scheme == "redis" || scheme == "rediss" || strings.HasPrefix(scheme, "redis+") || strings.HasPrefix(scheme, "rediss+")) && strings.HasPrefix(path, "//"):
		var err error
		u.kind = inRedis
		u.redis, err = parseRedis(text, where)
		return u, err
	case scheme == "dynamodb" && strings.HasPrefix(path, "//"):
		var err error
		u.kind = inDynamo
		u.dynamo, err = parseDynamo(text, where)
		return u, err
	}
	if at := strings.LastIndexByte(text, '@'); at >= 0 { // there may be a password before it
		text = "…" + text[at:]
	}
	if query := strings.IndexByte(text, '?'); query >= 0 { // or a secret after it
		text = text[:query] + "?…"
	}
	return URL{}, &input.Error{Field: where, Value: text,
		Want: "choose sqlite:PATH (a file, such as sqlite:semel.db or sqlite:/var/lib/semel.db), postgres://USER@HOST/DATABASE (the password by PGPASSWORD or ~/.pgpass), redis://HOST:PORT/0 (also rediss:, redis+cluster:, redis+sentinel:), dynamodb://TABLE?region=REGION or memory: (lost with the process)"}
}

// Secret is the URL as it was given, its password too: for another process of
// this program, in its environment and not among its arguments.
func (u URL) Secret() string {
	if u.kind == inSQLite {
		return u.String()
	}
	return u.text
}

// File returns the path of the file, if the records are in one.
func (u URL) File() (path string, ok bool) { return u.text, u.kind == inSQLite }

// Where is the option that names the store.
func (u URL) Where() string { return u.where }

// Memory reports whether the records live in this process only.
func (u URL) Memory() bool { return u.kind == inMemory }

// CheckPark returns an error if the store does not take requests that are to be parked
// in doubt. Redis does only if it is told to, because it may lose a claim. Each parked
// request would fail otherwise.
func (u URL) CheckPark() error {
	if u.kind != inRedis || u.redis.opt.AllowPark {
		return nil
	}
	return &input.Error{Field: u.where, Value: u.String(),
		Want: "does not take on-doubt park, because a crash or a fail-over of Redis can lose a claim, and the effect then happens twice; if that is acceptable add semel-allow-park to the query, or choose postgres:// or sqlite:"}
}

// String is the URL as Parse reads it, but without a password.
func (u URL) String() string {
	switch u.kind {
	case inSQLite:
		return "sqlite:" + u.text
	case inPostgres, inRedis, inDynamo:
		p, err := url.Parse(u.text)
		if err != nil {
			return "a store" // cannot be: Parse has parsed it
		}
		if _, has := p.User.Password(); has {
			p.User = url.User(p.User.Username())
		}
		q := p.Query()
		before := len(q)
		maps.DeleteFunc(q, func(name string, _ []string) bool { return isSecret(name) })
		if len(q) < before {
			p.RawQuery = q.Encode()
		}
		return p.String()
	}
	return u.text
}

// isSecret reports whether the value of a parameter of a URL may be a secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"pass", "secret", "token", "credential", "auth"}, func(part string) bool { return strings.Contains(name, part) })
}

// Open opens the store, and makes it or brings its schema up to date where
// that is needed. The ctx bounds the opening only.
func (u URL) Open(ctx context.Context) (Handle, error) { return u.encrypt(u.open(ctx)) }

func (u URL) open(ctx context.Context) (Handle, error) {
	switch u.kind {
	case inMemory:
		return memory{memstore.New(nil)}, nil
	case inPostgres:
		return u.postgres.open(ctx, false)
	case inRedis:
		return u.redis.open(ctx)
	case inDynamo:
		return u.dynamo.open(ctx, true)
	}
	return sqlitestore.Open(ctx, u.text, nil)
}

// OpenExisting opens a store for an operator: one that is there, as it is.
func (u URL) OpenExisting(ctx context.Context) (Handle, error) {
	return u.encrypt(u.openExisting(ctx))
}

func (u URL) openExisting(ctx context.Context) (Handle, error) {
	switch u.kind {
	case inMemory:
		return nil, &input.Error{Field: u.where, Value: u.String(), Want: "lives inside another process and cannot be opened from here; choose sqlite:PATH, postgres://…, redis://… or dynamodb://…"}
	case inPostgres:
		h, err := u.postgres.open(ctx, true)
		return h, u.unfit(err)
	case inRedis:
		return u.redis.open(ctx)
	case inDynamo:
		return u.dynamo.open(ctx, false)
	}
	switch _, err := os.Stat(u.text); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %q: %w", u.where, u.text, noFile{u})
	case err != nil:
		return nil, fmt.Errorf("%s: %w", u.where, err)
	}
	s, err := sqlitestore.Open(ctx, u.text, &sqlitestore.Options{NoMigrate: true})
	if err != nil {
		return nil, u.unfit(err)
	}
	return s, nil
}

// noFile is the error of a SQLite file that does not exist. It is a store.ErrNoSchema.
type noFile struct{ u URL }

// Error says what to do about it.
func (e noFile) Error() string {
	return "there is no such file; " + e.u.ifAbsent()
}

// Unwrap finds the error that all stores share.
func (noFile) Unwrap() error { return store.ErrNoSchema }

// OpenForDryRun opens a store that is there, as it is. If it does not exist yet, absent is
// true, nothing is made, and the store is an empty one in this process.
func (u URL) OpenForDryRun(ctx context.Context) (h Handle, absent bool, err error) {
	h, err = u.openExisting(ctx)
	if errors.Is(err, store.ErrNoSchema) || errors.Is(err, dynamostore.ErrNoTable) {
		h, absent, err = memory{memstore.New(nil)}, true, nil
	}
	h, err = u.encrypt(h, err)
	return h, absent, err
}

// ifAbsent is what to do if there is no store.
func (u URL) ifAbsent() string {
	user := "semel proxy, or your service, was started with"
	switch u.role {
	case Source:
		return "give the store that the processes have used until now"
	case SagasSeen:
		return "give the store that your service was started with"
	case OutboxSeen:
		return "give the store that your service writes the messages to"
	case OutboxOwn:
		user = "your service writes the messages to"
	}
	return "give the store that " + user + ", or make it by semel migrate --store " + u.String()
}

// unfit adds to an error that the schema does not fit what to do about that.
func (u URL) unfit(err error) error {
	if errors.Is(err, store.ErrNoSchema) {
		return fmt.Errorf("%w (%s)", err, u.ifAbsent())
	}
	if isSchema := errors.Is(err, sqlitestore.ErrSchema) || errors.Is(err, pgstore.ErrSchema); isSchema && !strings.HasSuffix(err.Error(), "update the package") { // this program is too old
		return fmt.Errorf("%w (semel migrate --store %s makes a schema, or brings an older one up to date)", err, u)
	}
	return err
}

// Partitioned is the store whose schema, if it is made, has its records in n
// partitions; false if it cannot be.
func (u URL) Partitioned(n int) (URL, bool) {
	if u.kind != inPostgres {
		return u, false
	}
	p := *u.postgres
	p.opt.Partitions = n
	u.postgres = &p
	return u, true
}

// Migrations are the scripts that make the store's schema, if it has one.
func (u URL) Migrations() (fs.FS, bool) {
	switch u.kind {
	case inPostgres:
		return pgstore.Migrations(), true
	case inSQLite:
		return sqlitestore.Migrations(), true
	}
	return nil, false
}

// memory is a store that needs no closing.
type memory struct{ *memstore.Store }

func (memory) Close() error { return nil }
