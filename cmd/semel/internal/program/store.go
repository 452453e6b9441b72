package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

// openTime is how long the store may take to open before OpenStore logs that.
const openTime = 3 * time.Second

// OpenStore opens the store, and makes it or brings its schema up to date where that is
// needed. Its error has the command that helps against it.
func OpenStore(ctx context.Context, u storeurl.URL, log *slog.Logger) (storeurl.Handle, error) {
	return open(ctx, u, u.Open, log)
}

// OpenExisting opens a store that is there, as it is. Its error has the command that
// helps against it.
func OpenExisting(ctx context.Context, u storeurl.URL, log *slog.Logger) (storeurl.Handle, error) {
	return open(ctx, u, u.OpenExisting, log)
}

// OpenForDryRun opens the store of --to for a run that only counts, as it is. If it does
// not exist yet, nothing is made, the store is an empty one in this process, and absent
// says so, with the command that makes it.
func OpenForDryRun(ctx context.Context, u storeurl.URL, log *slog.Logger) (st storeurl.Handle, absent string, err error) {
	st, err = open(ctx, u, func(ctx context.Context) (storeurl.Handle, error) {
		h, isAbsent, err := u.OpenForDryRun(ctx)
		if isAbsent {
			absent = fmt.Sprintf("%s: %s does not exist yet; semel migrate --store '%s' makes it", u.Where(), u, u)
			if path, ok := u.File(); ok {
				if _, serr := os.Stat(filepath.Dir(path)); errors.Is(serr, fs.ErrNotExist) {
					absent += ", after mkdir -p " + filepath.Dir(path)
				}
			}
		}
		return h, err
	}, log)
	return st, absent, err
}

func open(ctx context.Context, u storeurl.URL, how func(context.Context) (storeurl.Handle, error), log *slog.Logger) (storeurl.Handle, error) {
	late := time.AfterFunc(openTime, func() { log.Warn("the store has not answered yet", "store", u.String()) })
	defer late.Stop()
	st, err := how(ctx)
	if err != nil {
		return nil, mendStore(u, fmt.Errorf("store: %w", err))
	}
	return st, nil
}

// mendStore adds to an error the command that helps against it.
func mendStore(u storeurl.URL, err error) error {
	if path, ok := u.File(); ok {
		if errors.Is(err, store.ErrNoSchema) { // no folder nor right makes the store
			return err
		}
		dir := filepath.Dir(path)
		if _, serr := os.Stat(dir); errors.Is(serr, fs.ErrNotExist) {
			return fmt.Errorf("%w (make the folder with: mkdir -p %s)", err, dir)
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w (see who may write there with: ls -ld %s)", err, dir)
		}
		return err
	}
	if _, isNetwork := errors.AsType[*net.OpError](err); !isNetwork {
		return err
	}
	if shown := u.String(); strings.HasPrefix(shown, "redis") {
		return fmt.Errorf("%w (see whether it answers with: redis-cli -u '%s' ping)", err, shown)
	}
	return err
}

// checkTime limits the check of the store's settings at the start.
const checkTime = 5 * time.Second

// WarnSettings logs each setting with which the store can lose records, as semel
// doctor does. The program starts anyway, because the settings may be intended.
func WarnSettings(ctx context.Context, log *slog.Logger, st store.Store) {
	c, ok := store.As[store.Checker](st)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, line := range input.Lines(c.Check(ctx)) {
		log.Warn("the settings of the store are unsafe; see semel doctor", "reason", line)
	}
}
