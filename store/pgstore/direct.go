package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// direct is a connection of the application's pool on which the statements of
// Atomic.Run are prepared, and sent past pgx's own way to do that, which looks up
// for each how it is described, how to encode what it is given, and where to put
// what it gives. That was up to a sixth of what a run costs its process.
//
// The first transaction on a connection goes by pgx, as do all where somebody
// may want to see or change what is sent: a tracer, or another exec mode than
// pgx's default. If what is prepared is taken away, pgx goes on.
type direct struct {
	off bool                                    // all goes by pgx
	tx  pgx.Tx                                  // of the first transaction; as it is never told of an end, of all
	are map[string]*pgconn.StatementDescription // by their text
}

// directKey is where a connection keeps its direct, which is of all stores.
const directKey = "github.com/semel-go/semel/store/pgstore"

// directOf is that of a connection, which nobody else is using.
func directOf(conn *pgx.Conn) *direct {
	kept := conn.PgConn().CustomData()
	d, is := kept[directKey].(*direct)
	if !is {
		cfg := conn.Config()
		d = &direct{off: cfg.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement || cfg.Tracer != nil}
		kept[directKey] = d
	}
	return d
}

// began notes the transaction that pgx has begun.
func (d *direct) began(tx pgx.Tx) {
	if d != nil && d.tx == nil {
		d.tx = tx
	}
}

// maxPrepared is from how many statements on no more are prepared on a
// connection: those of 15 stores, or of 5 that look ahead, too. They stay until it
// ends, and so do those of stores that are closed.
const maxPrepared = 32

// prepare prepares statements of a store in one round trip, before a
// transaction, from the second on. The first of them tells whether that was
// done. If the server refuses one, pgx goes on, and says why.
func (d *direct) prepare(ctx context.Context, conn *pgx.Conn, all []string) error {
	if d.off || d.tx == nil || d.are[all[0]] != nil || len(d.are) >= maxPrepared {
		return nil
	}
	var texts []string
	line := conn.PgConn().StartPipeline(ctx)
	for _, text := range all {
		if d.are[text] == nil {
			texts = append(texts, text)
			line.SendPrepare(preparedName(text), text, nil)
		}
	}
	if d.are == nil {
		d.are = make(map[string]*pgconn.StatementDescription, len(texts))
	}
	err := line.Sync()
	for i := 0; err == nil && i < len(texts); i++ { // they come without name and text
		var got any
		if got, err = line.GetResults(); err != nil {
			break
		}
		is, ok := got.(*pgconn.StatementDescription)
		if !ok {
			err = errNoAnswer
			break
		}
		is.Name, is.SQL = preparedName(texts[i]), texts[i]
		d.are[texts[i]] = is
	}
	if cerr := line.Close(); err == nil {
		err = cerr
	}
	if code(err) != "" && !conn.IsClosed() {
		d.off = true
		return nil
	}
	return err
}

// preparedName is under which a statement is prepared.
func preparedName(sql string) string {
	sum := sha256.Sum256([]byte(sql))
	return "semel_" + hex.EncodeToString(sum[:12])
}

// knows reports whether all of these are prepared. Nil knows none.
func (d *direct) knows(steps []step) bool {
	if d == nil || d.off {
		return false
	}
	for i := range steps {
		if d.are[steps[i].sql] == nil {
			return false
		}
	}
	return true
}

var errStale = errors.New("what was prepared on the connection is gone")

// stale reports whether what was prepared is gone; or, of what is sent with a
// BEGIN, of no use any more (“cached plan must not change result type”, which
// needs columns). The server has not carried it out.
func stale(err error, begins bool) bool {
	c := code(err)
	return c == invalidStatementName || begins && c == featureNotSupported
}

// asBinary is the format of all that is sent and received.
var asBinary = []int16{pgx.BinaryFormatCode}

// argRooms is memory for the arguments of a statement, which those of a batch take
// much of.
var argRooms = sync.Pool{New: func() any { return new([]byte) }}

// send sends steps that it knows, in one round trip.
func (d *direct) send(ctx context.Context, conn *pgx.Conn, steps []step) (pgx.BatchResults, error) {
	var b pgconn.Batch
	var values [maxArgs][]byte
	room := argRooms.Get().(*[]byte)
	defer argRooms.Put(room)
	for i := range steps {
		s, is := &steps[i], d.are[steps[i].sql]
		if len(s.args) != len(is.ParamOIDs) {
			return nil, fmt.Errorf("%d arguments for %d parameters", len(s.args), len(is.ParamOIDs))
		}
		buf := (*room)[:0] // what was before is in b
		for j, arg := range s.args {
			var err error
			if values[j], buf, err = binaryOf(arg, is.ParamOIDs[j], buf); err != nil {
				return nil, fmt.Errorf("parameter %d: %w", j+1, err)
			}
		}
		*room = buf
		b.ExecStatement(is, values[:len(s.args)], asBinary, asBinary)
	}
	return directAnswers{mrr: conn.PgConn().ExecBatch(ctx, &b)}, nil
}

// directAnswers are those to what was sent. What its steps do not need is not
// there.
type directAnswers struct {
	pgx.BatchResults
	mrr *pgconn.MultiResultReader
}

func (a directAnswers) next() (*pgconn.ResultReader, error) {
	if a.mrr.NextResult() {
		return a.mrr.ResultReader(), nil
	}
	err := a.mrr.Close()
	if err == nil {
		err = errNoAnswer
	}
	return nil, err
}

// Exec implements pgx.BatchResults.
func (a directAnswers) Exec() (pgconn.CommandTag, error) {
	r, err := a.next()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return r.Close()
}

// Query implements pgx.BatchResults.
func (a directAnswers) Query() (pgx.Rows, error) {
	r, err := a.next()
	return &directRows{r: r}, err
}

// directRows are the rows of an answer.
type directRows struct {
	pgx.Rows
	r   *pgconn.ResultReader
	err error
}

// Next implements pgx.Rows.
func (a *directRows) Next() bool { return a.r.NextRow() }

// Scan implements pgx.Rows.
func (a *directRows) Scan(to ...any) error { return scanBinary(a.r.Values(), to) }

// Close implements pgx.Rows.
func (a *directRows) Close() { _, a.err = a.r.Close() }

// Err implements pgx.Rows. It reads what is left, as pgx's has read it.
func (a *directRows) Err() error {
	a.Close()
	return a.err
}

// QueryRow implements pgx.BatchResults.
func (a directAnswers) QueryRow() pgx.Row { return directRow(a) }

// Close implements pgx.BatchResults.
func (a directAnswers) Close() error { return a.mrr.Close() }

type directRow directAnswers

// Scan implements pgx.Row.
func (a directRow) Scan(to ...any) error {
	r, err := directAnswers(a).next()
	if err != nil {
		return err
	}
	if r.NextRow() {
		err = scanBinary(r.Values(), to)
	} else {
		err = pgx.ErrNoRows
	}
	if _, cerr := r.Close(); cerr != nil {
		return cerr
	}
	return err
}
