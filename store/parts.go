package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PartContext returns the context in which a store that consists of parts, such as
// shards or the nodes of a cluster, asks one of them, for authors of stores. It ends
// after half of the time that ctx has left, so that a part that hangs leaves time for the
// other parts and for the caller. If ctx has no deadline, it ends with ctx.
func PartContext(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// Part is a part of a store, for SweepParts.
type Part struct {
	Name  string // without bars and commas
	Sweep func(ctx context.Context, from Cursor, limit int) (SweepResult, error)
}

// SweepParts is Store.Sweep for a store that consists of parts, sorted by name, for
// authors of stores. A pass goes from part to part. All lapsed records of a step are of one
// part, and Now is its clock. The parts of a step have half of the time that ctx has left;
// if that is not enough for a part after the first, it gets a step of its own. If a part
// fails, the pass sweeps the others and then tries it once more; if it fails again, the pass
// ends with its error. Parts may come and go between two steps.
func SweepParts(ctx context.Context, from Cursor, limit int, parts []Part) (SweepResult, error) {
	if err := ctx.Err(); err != nil {
		return SweepResult{}, err
	}
	if limit < 1 {
		return SweepResult{}, fmt.Errorf("store: sweep limit is %d; it must be at least 1", limit)
	}
	p, err := parsePlace(from)
	if err != nil {
		return SweepResult{}, err
	}
	part, cancel := PartContext(ctx)
	defer cancel()
	var all SweepResult
	for i, first := p.find(parts), true; i >= 0; i, first = p.find(parts), false {
		res, err := parts[i].Sweep(part, p.inner, limit-all.Deleted)
		switch {
		case err == nil:
			all = SweepResult{Deleted: all.Deleted + res.Deleted, Lapsed: res.Lapsed, Now: res.Now}
		case !first: // it gets a step of its own
			all.Next = p.cursor()
			return all, nil
		case ctx.Err() == nil && !p.again:
			p.failed = append(p.failed, p.part)
		default:
			return SweepResult{}, err
		}
		if p.inner = res.Next; p.inner == "" && !p.next(parts) {
			break
		}
		if err != nil || p.again || p.inner != "" || len(all.Lapsed) > 0 || all.Deleted >= limit {
			all.Next = p.cursor()
			break
		}
	}
	return all, nil
}

// place is where a sweep of parts continues.
type place struct {
	again  bool     // this is the second try of the parts that failed
	failed []string // the parts still to be tried again
	part   string   // empty: the first
	inner  Cursor   // the part's cursor
}

// cursor is the place as text.
func (p *place) cursor() Cursor {
	turn := "1"
	if p.again {
		turn = "2"
	}
	return Cursor(turn + "|" + strings.Join(p.failed, ",") + "|" + p.part + "|" + string(p.inner))
}

func parsePlace(c Cursor) (place, error) {
	if c == "" {
		return place{}, nil
	}
	f := strings.SplitN(string(c), "|", 4)
	if len(f) != 4 || f[0] != "1" && f[0] != "2" || f[2] == "" {
		return place{}, fmt.Errorf("store: sweep cursor is %q; it must be empty or the Next of this store's last step", c)
	}
	p := place{again: f[0] == "2", part: f[2], inner: Cursor(f[3])}
	if f[1] != "" {
		p.failed = strings.Split(f[1], ",")
	}
	return p, nil
}

// find returns the index of the place's part. If that has left the store, the place moves
// on first. -1: the pass is over.
func (p *place) find(parts []Part) int {
	for {
		i, ok := search(parts, p.part)
		if ok {
			return i
		}
		if !p.next(parts) {
			return -1
		}
	}
}

// next moves to the next part, and after the last to those that failed. False: the pass
// is over.
func (p *place) next(parts []Part) bool {
	p.inner = ""
	i, ok := search(parts, p.part)
	if ok {
		i++
	}
	if !p.again && i < len(parts) {
		p.part = parts[i].Name
		return true
	}
	if len(p.failed) == 0 {
		return false
	}
	p.again, p.part, p.failed = true, p.failed[0], p.failed[1:]
	return true
}

// search returns the index of the first part that is not before name, and whether it has
// that name.
func search(parts []Part, name string) (int, bool) {
	return slices.BinarySearchFunc(parts, name, func(p Part, name string) int { return strings.Compare(p.Name, name) })
}
