package httpname

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// ParseRetryAfter reads the value of the header Retry-After: a number of seconds, or a
// date, which is compared with now.
func ParseRetryAfter(v string, now time.Time) (time.Duration, bool) {
	if v == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(v, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) { // out of range: n is the largest
		return time.Duration(n) * time.Second, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, t.Sub(now)), true
}
