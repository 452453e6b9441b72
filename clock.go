package semel

import "time"

// instant is a time of the local monotonic clock, which no correction of the
// wall clock moves; a time.Time would read both clocks.
type instant time.Duration

var epoch = time.Now()

func now() instant { return instant(time.Since(epoch)) }

func (i instant) add(d time.Duration) instant   { return i + instant(d) }
func (i instant) since(j instant) time.Duration { return time.Duration(i - j) }
