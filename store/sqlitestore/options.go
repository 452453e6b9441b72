package sqlitestore

import (
	"cmp"
	"fmt"
	"time"
)

// Options configures a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Relaxed commits without waiting for the disk (synchronous=NORMAL): a
	// power loss or a crash of the system, not of the process, may lose the
	// last commits, and their operations may run again.
	Relaxed bool
	// NoMigrate makes Open fail with ErrSchema if the schema is missing or
	// old, instead of migrating it. See Migrate and Migrations.
	NoMigrate bool
	// BusyTimeout is how long a change waits for another process, or for one
	// of the application's transactions, to release the file: 5 s by default.
	// Then it fails with ErrBusy.
	BusyTimeout time.Duration
	// MaxBatch is the most changes that share a commit: 256 by default.
	MaxBatch int

	// MaxTx is how long a transaction of Atomic.Run may take: 5 s by default.
	// Then the handler's context ends with the cause ErrTxTimeout, and the
	// transaction is rolled back, because nothing else can be written to the
	// file meanwhile, lease renewals included. Leases in the same file must
	// last more than three times as long, as a Guard's default of 30 s does.
	// The end of the context interrupts only a statement that was given it: a
	// statement without it (Tx.Exec, Tx.Query) holds the file until it ends.
	MaxTx time.Duration
	// Pragmas are run on each connection of Atomic.Run: the settings of the
	// application's own connections, such as "foreign_keys = on". Settings that
	// make a commit less safe are refused; see Relaxed.
	Pragmas []string

	// Now is the store's clock. Nil: time.Now. For tests.
	Now func() time.Time
}

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	d.BusyTimeout = cmp.Or(d.BusyTimeout, 5*time.Second)
	d.MaxBatch = cmp.Or(d.MaxBatch, 256)
	d.MaxTx = cmp.Or(d.MaxTx, 5*time.Second)
	if d.Now == nil {
		d.Now = time.Now
	}
	for _, f := range []struct {
		name     string
		value    any
		negative bool
	}{{"BusyTimeout", d.BusyTimeout, d.BusyTimeout < 0}, {"MaxBatch", d.MaxBatch, d.MaxBatch < 0}, {"MaxTx", d.MaxTx, d.MaxTx < 0}} {
		if f.negative {
			return d, fmt.Errorf("sqlitestore: Options.%s is %v; it must not be negative", f.name, f.value)
		}
	}
	return d, nil
}
