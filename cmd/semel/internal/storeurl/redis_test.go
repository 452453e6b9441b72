package storeurl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

func TestRedis_InvalidURL_ErrorHidesPassword(t *testing.T) {
	for text, want := range map[string]string{
		"redis://u:secret@h:x/0":                "is not a URL",
		"redis://h/0?semel-replicas=-1":         "number from 0",
		"redis://h/0?semel-fsync=maybe":         "true or false",
		"redis://h/0?semel-nonsense=1":          "semel-allow-park",
		"redis+cluster://h/?semel-allow-park=x": "true or false",
	} {
		_, err := storeurl.Parse(text, "--store")
		if err == nil || !input.Is(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestRedis_String_HidesPassword(t *testing.T) {
	text := "redis+sentinel://u:secret@h:1/0?master_name=main&sentinel_password=hidden&semel-allow-park"
	u := parse(t, text)
	if u.Secret() != text {
		t.Errorf("the secret is %q", u.Secret())
	}
	if s := u.String(); strings.Contains(s, "secret") || strings.Contains(s, "hidden") || !strings.Contains(s, "master_name=main") {
		t.Errorf("shown as %q", s)
	}
}

func TestRedis_Open_KeepsRecord(t *testing.T) {
	base := redistest.URL(t)
	park := store.Proposal{Key: store.Key{Operation: "o", Value: "k"}, State: store.Processing, Policy: store.Park, Owner: store.Owner{1}, Lease: time.Minute}
	for query, won := range map[string]bool{"?semel-prefix=storeurl-1:": false, "?semel-prefix=storeurl-2:&semel-allow-park": true} {
		u := parse(t, base+query)
		if _, ok := u.Migrations(); ok {
			t.Errorf("%s: has a schema", query)
		}
		h, err := u.OpenExisting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f, err := h.Claim(t.Context(), park); f.Won != won || (err == nil) != won {
			t.Errorf("%s: got %+v, %v", query, f, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
