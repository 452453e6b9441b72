package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Duration is a time span, written as Go does ("1m30s") or in days ("7d").
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler, for flags.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err == nil {
			*d = Duration(time.Duration(n) * 24 * time.Hour)
			return nil
		}
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration; write one such as 500ms, 30s, 15m, 24h or 7d", s)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalYAML implements yaml.Unmarshaler, so that errors have a line.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error { return scalar(n, d.UnmarshalText) }

// String writes it as UnmarshalText reads it.
func (d Duration) String() string {
	const day = 24 * time.Hour
	if v := time.Duration(d); v > 0 && v%day == 0 {
		return fmt.Sprintf("%dd", v/day)
	}
	return time.Duration(d).String()
}

// Size is a number of bytes, written as a number or with KiB, MiB or GiB.
type Size int64

var units = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// UnmarshalText implements encoding.TextUnmarshaler, for flags.
func (s *Size) UnmarshalText(text []byte) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size; write one such as 4096, 256KiB, 10MiB or 1GiB", text)
}

// UnmarshalYAML implements yaml.Unmarshaler, so that errors have a line.
func (s *Size) UnmarshalYAML(n *yaml.Node) error { return scalar(n, s.UnmarshalText) }

// String writes it with the largest unit that fits.
func (s Size) String() string {
	for _, u := range units {
		if s > 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

func scalar(n *yaml.Node, parse func([]byte) error) error {
	err := errors.New("must be one value, not a list or a mapping")
	if n.Kind == yaml.ScalarNode {
		err = parse([]byte(n.Value))
	}
	if err != nil { // of this type, so that the decoder goes on to the other fields
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %v", n.Line, err)}}
	}
	return nil
}
