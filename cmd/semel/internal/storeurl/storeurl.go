// Package storeurl opens the store that --store names.
package storeurl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/sqlitestore"
)

// Handle is an open store. Close it.
type Handle interface {
	store.Store
	Close() error
}

// URL names a store. The zero URL is invalid.
type URL struct {
	path   string // of the SQLite file
	memory bool
	where  string
}

// Parse reads a URL; where is for the messages of errors.
func Parse(text, where string) (URL, error) {
	u := URL{where: where}
	scheme, path, _ := strings.Cut(text, ":")
	switch {
	case scheme == "memory" && path == "" && text != scheme:
		u.memory = true
		return u, nil
	case scheme == "sqlite" && path != "" && !strings.ContainsAny(path, "?\x00") && !strings.HasPrefix(path, "//"):
		u.path = path
		return u, nil
	}
	return URL{}, &input.Error{Field: where, Value: text,
		Want: "choose sqlite:PATH (a file, such as sqlite:semel.db or sqlite:/var/lib/semel.db) or memory: (lost with the process)"}
}

// Memory reports whether the records live in this process only.
func (u URL) Memory() bool { return u.memory }

// String is the URL as Parse reads it.
func (u URL) String() string {
	if u.memory {
		return "memory:"
	}
	return "sqlite:" + u.path
}

// Open opens the store, and makes it or brings its schema up to date where
// that is needed. The ctx bounds the opening only.
func (u URL) Open(ctx context.Context) (Handle, error) {
	if u.memory {
		return memory{memstore.New(nil)}, nil
	}
	return sqlitestore.Open(ctx, u.path, nil)
}

// OpenExisting opens a store for an operator: one that is there, as it is.
func (u URL) OpenExisting(ctx context.Context) (Handle, error) {
	if u.memory {
		return nil, &input.Error{Field: u.where, Value: u.String(), Want: "lives inside another process and cannot be opened from here; choose sqlite:PATH"}
	}
	switch _, err := os.Stat(u.path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %q: there is no such file; give the path that semel proxy was started with", u.where, u.path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", u.where, err)
	}
	return sqlitestore.Open(ctx, u.path, &sqlitestore.Options{NoMigrate: true})
}

// Migrations are the scripts that make the store's schema, if it has one.
func (u URL) Migrations() (fs.FS, bool) {
	if u.memory {
		return nil, false
	}
	return sqlitestore.Migrations(), true
}

// memory is a store that needs no closing.
type memory struct{ *memstore.Store }

func (memory) Close() error { return nil }
