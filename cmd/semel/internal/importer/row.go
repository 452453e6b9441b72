package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/names"
	"github.com/semel-go/semel/store"
)

// Row is one row of a table: values by the names of Columns.
type Row map[string]any

// Columns are the names that a row may have. Only key is required.
func Columns() []string {
	return []string{"operation", "tenant", "key", "status", "body", "content_type", "location", "codec", "created", "expires"}
}

// Defaults are what rows need not say.
type Defaults struct {
	Operation string
	Status    int           // 0: each row must have one
	Retention time.Duration // from now on, for rows without expires
	HashKeys  []byte        // semel.Options.HashKeys
}

// errExpired says that a row need not be imported.
var errExpired = errors.New("expired")

const (
	leastStatus = 200 // lower ones are no answer
	mostStatus  = 599
)

// record makes the record of a row.
func (d *Defaults) record(row Row, now time.Time) (r store.Record, err error) {
	var errs []error
	field := func(name, def string) string {
		text, err := textOf(row[name])
		if errs = append(errs, named(name, err)); text == "" {
			return def
		}
		return text
	}
	r.Key = store.Key{Operation: field("operation", d.Operation), Tenant: field("tenant", ""), Value: field("key", "")}
	errs = append(errs, checkKey(r.Key))
	status, err := numberOf(row["status"], d.Status)
	switch errs = append(errs, named("status", err)); {
	case err != nil:
	case status == 0 && isMissing(row["status"]):
		errs = append(errs, fmt.Errorf("status: is missing (NULL or empty); it must be %d to %d; --status is for rows without one", leastStatus, mostStatus))
	case status < leastStatus || status > mostStatus:
		errs = append(errs, fmt.Errorf("status: is %d; it must be %d to %d; --status is for rows without one", status, leastStatus, mostStatus))
	}
	created, err := timeOf(row["created"], now)
	errs = append(errs, named("created", err))
	expires, err := timeOf(row["expires"], now.Add(d.Retention))
	errs = append(errs, named("expires", err))
	r.Outcome, err = outcome(row, status, field)
	if err := errors.Join(append(errs, named("body", err))...); err != nil {
		return r, err
	}
	if !expires.After(now) {
		return r, errExpired
	}
	r.Key = r.Key.Hashed(d.HashKeys)
	// The lowest fence, so that no import overwrites a record of a call. The owner is the
	// same each time, so that a repeated import finds its own records.
	digest := r.Key.Digest()
	sum := sha256.Sum256(append([]byte("semel import "), digest[:]...))
	r.State, r.Fence, r.Owner, r.Holder, r.Format = store.Completed, 1, store.Owner(sum[:16]), "semel import", store.Format
	r.Fingerprint = store.Fingerprint{Alg: store.AnyPayload}
	r.Created, r.Expires = store.Time(store.Micros(created)), store.Time(store.Micros(expires))
	r.Updated, r.Completed = r.Created, r.Created
	return r, nil
}

// checkKey refuses a key that no call can have, because its duplicates would run.
func checkKey(k store.Key) error {
	errs := []error{names.CheckOperation(k.Operation), names.Check("key", k.Value)}
	if k.Tenant != "" {
		errs = append(errs, names.Check("tenant", k.Tenant))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, f := range []struct{ name, value string }{{"operation", k.Operation}, {"tenant", k.Tenant}, {"key", k.Value}} {
		if strings.TrimSpace(f.value) != f.value {
			errs = append(errs, fmt.Errorf("%s: begins or ends with a blank, such as PostgreSQL adds to char(n); write trim(…) AS %[1]s in the query", f.name))
		}
	}
	return errors.Join(errs...)
}

// outcome is the answer of a row. Without a column for the body it is a tombstone.
func outcome(row Row, status int64, field func(name, def string) string) (o store.Outcome, err error) {
	o = store.Outcome{Code: int(status), Codec: field("codec", "")}
	for _, h := range []struct{ column, name string }{{"content_type", "Content-Type"}, {"location", "Location"}} {
		if v := field(h.column, ""); v != "" {
			o.Header = append(o.Header, store.Header{Name: h.name, Value: v})
		}
	}
	body, ok := row["body"]
	if !ok {
		o.Gone = true
		return o, nil
	}
	text, err := textOf(body)
	o.Body = []byte(text)
	return o, err
}

func named(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

// textOf is a value as text. Nil is the empty text.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case json.Number:
		return v.String(), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("has the type %T; cast it to text", v)
}

// isMissing reports whether a row has no value: NULL or an empty text.
func isMissing(v any) bool {
	text, err := textOf(v)
	return err == nil && text == ""
}

// numberOf is a whole number, or def for nil.
func numberOf(v any, def int) (int64, error) {
	switch v := v.(type) {
	case nil:
		return int64(def), nil
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
	}
	text, err := textOf(v)
	if err != nil {
		return 0, errors.New("is no whole number")
	}
	if text == "" {
		return int64(def), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number", text)
	}
	return n, nil
}

// Numbers from these on are milliseconds and microseconds since 1970, not seconds.
const (
	fromMillis = 100_000_000_000     // seconds: the year 5138
	fromMicros = 100_000_000_000_000 // milliseconds: the year 5138
)

// layouts are the forms of times in text.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02",
}

// Times outside of these bounds are mistakes: a number of another unit or form, such as
// 20301231, or a value that stands for "never". Most of them would count as expired.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	tooLate  = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

const wantTime = "write it as 2006-01-02T15:04:05Z, or as seconds or milliseconds since 1970"

// timeOf is a time within the bounds, or def for nil and the empty text. Text without a
// time zone is in UTC.
func timeOf(v any, def time.Time) (t time.Time, err error) {
	switch v := v.(type) {
	case time.Time:
		t = v
	case int64:
		t = sinceEpoch(float64(v))
	case float64:
		t, err = parseTime(strconv.FormatFloat(v, 'g', -1, 64))
	default:
		text, terr := textOf(v)
		if terr != nil {
			return def, errors.New("is no time")
		}
		if text = strings.TrimSpace(text); text == "" {
			return def, nil
		}
		t, err = parseTime(text)
	}
	switch {
	case err != nil:
		return def, err
	case t.Before(earliest) || !t.Before(tooLate):
		text, _ := textOf(v)
		return def, fmt.Errorf("%s is no time from 2000 to 9999; %s", cmp.Or(text, fmt.Sprint(v)), wantTime)
	}
	return t, nil
}

// errNever refuses PostgreSQL's infinity: each record ends.
var errNever = errors.New("is 'infinity', and a record needs an end; write LEAST(…, now() + interval '1 year') in the query")

func parseTime(text string) (time.Time, error) {
	switch n, err := strconv.ParseFloat(text, 64); {
	case err != nil:
	case math.IsInf(n, 1):
		return time.Time{}, errNever
	default:
		return sinceEpoch(n), nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; %s", text, wantTime)
}

// sinceEpoch is a number as a time; the zero Time, which is too early, if it is no number,
// does not fit, or has as many digits as a date with the time of day: 20301231235959 would
// be milliseconds in the year 2613. No milliseconds have 14 digits, and no microseconds 17,
// before the year 2286.
func sinceEpoch(n float64) time.Time {
	switch {
	case math.IsNaN(n) || math.Abs(n) >= math.MaxInt64 || 1e13 <= n && n < 1e14 || 1e16 <= n && n < 1e17:
		return time.Time{}
	case math.Abs(n) >= fromMicros:
		return time.UnixMicro(int64(n))
	case math.Abs(n) >= fromMillis:
		return time.UnixMicro(int64(n * 1000))
	}
	return time.UnixMicro(int64(n * 1_000_000))
}
