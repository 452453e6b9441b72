package main

import (
	"context"
	"errors"
	"io"
)

// act is what happens on a side.
type act struct {
	storm *storm
	kills int // in all
	hope  int // to find in flight at a kill
	// work is what the storm disturbs. It returns when all is done, or ctx has
	// ended.
	work func(ctx context.Context) error
	now  func() string // how it goes
}

// perform does the work in the storm, and tells how it goes.
func perform(ctx context.Context, o *Options, a *act, stderr io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	told, end := context.WithCancel(limited)
	defer end()
	silent := make(chan struct{})
	go func() {
		defer close(silent)
		progress(told, stderr, a.now)
	}()
	stormy, calmDown := context.WithCancel(limited)
	defer calmDown()
	stormed := make(chan error, 1)
	go func() {
		err := a.storm.run(stormy, a.kills, a.hope)
		if err != nil {
			cancel() // nothing would answer the clients
		}
		stormed <- err
	}()
	worked := a.work(limited)
	calmDown()
	err := <-stormed
	end()
	<-silent
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, worked)
}
