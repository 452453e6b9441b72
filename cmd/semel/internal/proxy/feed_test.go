package proxy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestFeed_TwinReads_GetsSameBytes(t *testing.T) {
	text := strings.Repeat("0123456789", 40_000)
	for _, length := range []int64{int64(len(text)), -1} {
		f := newFeed(io.NopCloser(strings.NewReader(text)), length)
		f.patience = time.Hour
		got := make(chan []byte)
		go func() {
			b, err := io.ReadAll(twinBody{f})
			if err != nil {
				t.Errorf("the twin: %v", err)
			}
			got <- b
		}()
		if b, err := io.ReadAll(f); err != nil || string(b) != text {
			t.Errorf("%d bytes are forwarded, %v", len(b), err)
		}
		if b := <-got; string(b) != text {
			t.Errorf("the twin got %d bytes", len(b))
		}
	}
}

func TestFeed_TwinDoesNotRead_BodyIsForwarded(t *testing.T) {
	text := bytes.Repeat([]byte("x"), 10*feedSize)
	f := newFeed(io.NopCloser(bytes.NewReader(text)), int64(len(text)))
	f.patience = 0
	if b, err := io.ReadAll(f); err != nil || len(b) != len(text) {
		t.Errorf("%d bytes are forwarded, %v", len(b), err)
	}
	if b, err := io.ReadAll(twinBody{f}); !errors.Is(err, errFeedCut) || len(b) > feedSize {
		t.Errorf("the twin got %d bytes, %v", len(b), err)
	}
}

func TestFeed_TwinLeaves_BodyIsForwarded(t *testing.T) {
	text := bytes.Repeat([]byte("x"), 10*feedSize)
	f := newFeed(io.NopCloser(bytes.NewReader(text)), -1)
	f.patience = time.Hour
	_ = twinBody{f}.Close()
	if b, err := io.ReadAll(f); err != nil || len(b) != len(text) {
		t.Errorf("%d bytes are forwarded, %v", len(b), err)
	}
}
