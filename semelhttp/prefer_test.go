package semelhttp

import (
	"net/http"
	"testing"
	"time"
)

func TestPreferWait_Values_AreParsed(t *testing.T) {
	c, err := (&Options{Wait: 10 * time.Second}).config()
	if err != nil {
		t.Fatal(err)
	}
	none, _ := (*Options)(nil).config()
	for _, v := range []struct {
		prefer []string
		want   time.Duration
	}{
		{nil, 10 * time.Second},
		{[]string{"wait=3"}, 3 * time.Second},
		{[]string{"WAIT = 3"}, 3 * time.Second},
		{[]string{`wait="3"`}, 3 * time.Second},
		{[]string{"wait=0"}, 0},
		{[]string{"wait=11"}, 10 * time.Second},
		{[]string{"wait=99999999999999999999"}, 10 * time.Second},
		{[]string{"wait=-1"}, 10 * time.Second},
		{[]string{"wait"}, 10 * time.Second},
		{[]string{"respond-async, wait=3; x=y"}, 3 * time.Second},
		{[]string{"respond-async", "wait=3"}, 3 * time.Second},
		{[]string{"waits=3"}, 10 * time.Second},
	} {
		h := http.Header{"Prefer": v.prefer}
		if got := c.wait(h); got != v.want {
			t.Errorf("%q: %v, want %v", v.prefer, got, v.want)
		}
		if got := none.wait(h); got != 0 {
			t.Errorf("%q: waits %v where waiting is off", v.prefer, got)
		}
	}
}
