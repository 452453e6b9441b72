package config

import (
	"testing"
	"time"
)

func TestDuration_GoFormatOrDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "30s": 30 * time.Second, "1m30s": 90 * time.Second, "7d": 7 * 24 * time.Hour, "-1s": -time.Second,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%s: got %v, %v; want %v", text, time.Duration(d), err, want)
		}
	}
	for _, text := range []string{"", "abc", "30", "d", "-1d", "1.5d", "99999d", "7 d"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %v", text, time.Duration(d))
		}
	}
}

func TestSize_BinaryUnitOrNone(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "4096": 4096, "256KiB": 256 << 10, "10MiB": 10 << 20, "1GiB": 1 << 30,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: got %d, %v; want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "10MB", "-1", "-1KiB", "1.5MiB", "9223372036854775807KiB", "1 MiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %d", text, s)
		}
	}
}

func TestString_RoundTrips(t *testing.T) {
	for _, text := range []string{"500ms", "1m30s", "1d", "7d"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != text {
			t.Errorf("%s: got %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"0", "1", "1023", "256KiB", "10MiB", "3GiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s: got %v, %v", text, s, err)
		}
	}
}
