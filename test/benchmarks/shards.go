package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
)

// The assumptions of docs/scale.md.
const (
	keysADay   = 1_000_000_000
	peakFactor = 3 // the busiest second has so many times the average
	aDay       = 24 * 60 * 60
	replayRate = 0.1 // replays for each new call
	usable     = 0.7 // of the measured rate, that a server should have at the peak
)

func average() float64 { return float64(keysADay) / aDay }

func peak() float64 { return average() * peakFactor }

// zipfExponent says how uneven the calls of the simulation's second part are.
const zipfExponent = 1.1

// The kinds of calls of the simulation.
const (
	eachKeyOnce = "each key once"
	someOften   = "some keys often"
)

// measureShards simulates where keys are. It asks shardstore itself for the shard of
// each key, so that it cannot differ from the code. Each second has as many calls as
// the peak of docs/scale.md.
func measureShards(_ context.Context, l *lab) (all []Figure, err error) {
	for _, n := range l.opt.shards {
		shards := make([]shardstore.Shard, n)
		for i := range shards {
			shards[i] = shardstore.Shard{Name: fmt.Sprint("shard-", i), Store: memstore.New(nil)}
		}
		st, err := shardstore.New(shards)
		if err != nil {
			return nil, err
		}
		index := map[string]uint16{}
		for i, name := range st.Names() {
			index[name] = uint16(i)
		}
		at := make([]uint16, l.opt.keys)
		for i := range at {
			at[i] = index[st.On(store.Key{Operation: "charge", Tenant: fmt.Sprint("acc-", i%10_000), Value: newKey()})]
		}
		zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), zipfExponent, 1, uint64(l.opt.keys-1))
		for _, calls := range []struct {
			kind  string
			shard func(i int) uint16
		}{
			{eachKeyOnce, func(i int) uint16 { return at[i] }},
			{someOften, func(int) uint16 { return at[zipf.Uint64()] }},
		} {
			f := Figure{Group: "shards", Name: ours, Kind: calls.kind, N: n, Values: load(n, l.opt.keys, calls.shard)}
			l.say("  %2d shards, %s: the fullest has %.3f of its share, and %.3f in its fullest second", n, calls.kind, f.Values["share"].Median(), f.Values["second"].Median())
			all = append(all, f)
		}
	}
	return all, nil
}

// load counts calls on n shards. share is the most calls that a shard has, in units of
// an equal share; second is the same for single seconds, as quartiles, and most is that
// of the worst second.
func load(n, calls int, next func(i int) uint16) map[string]Stat {
	whole, now := make([]int, n), make([]int, n)
	inSecond := min(int(peak()), calls)
	var seconds []float64
	for i := range calls {
		s := next(i)
		whole[s]++
		now[s]++
		if (i+1)%inSecond == 0 {
			seconds = append(seconds, float64(slices.Max(now))*float64(n)/float64(inSecond))
			clear(now)
		}
	}
	return map[string]Stat{
		"share": once(float64(slices.Max(whole)) * float64(n) / float64(calls)), "second": quartiles(seconds), "most": once(slices.Max(seconds)), "keys": once(float64(calls)),
	}
}
