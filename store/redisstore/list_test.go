package redisstore

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// scanHook has the server name each key twice, and fails what comes then.
type scanHook struct {
	waitHook
	page  []string
	again bool
	fail  error
}

func (h *scanHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		scan, ok := cmd.(*redis.ScanCmd)
		switch {
		case h.fail != nil && cmd.Name() == "evalsha":
			cmd.SetErr(h.fail)
			return h.fail
		case ok && h.again:
			scan.SetVal(h.page, 0)
			return nil
		}
		err := next(ctx, cmd)
		if ok {
			h.page, _ = scan.Val()
			h.again = true
			scan.SetVal(h.page, 1)
		}
		return err
	}
}

func TestList_ScanRepeatsKey_YieldsItOnce(t *testing.T) {
	s := openNew(t, nil)
	for i := range 5 {
		claim(t, s, itoa(i))
	}
	s.client.AddHook(&scanHook{})
	given := map[string]int{}
	for f, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		given[f.Record.Key.Value]++
	}
	for i := range 5 {
		if given[itoa(i)] != 1 {
			t.Errorf("%v", given)
		}
	}
}

// If List cannot read a part of the server, its caller gets an error.
func TestList_ServerFails_EndsWithError(t *testing.T) {
	s := openNew(t, nil)
	claim(t, s, "k")
	down := errors.New("down")
	s.client.AddHook(&scanHook{fail: down})
	var errs []error
	for _, err := range s.List(t.Context(), store.Filter{}) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], down) {
		t.Errorf("%v, want %v", errs, down)
	}
}
