package semelgrpc

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

func TestStream_WithKey_IsRefused(t *testing.T) {
	s := &service{}
	c := serve(t, s, guardOf(t, nil), Options{})
	stream, err := c.FullDuplexCall(withKey(t.Context(), "k"))
	if err == nil {
		_, err = stream.Recv()
	}
	wantRefusal(t, err, codes.Unimplemented, "STREAM", false)
	if stream, err = c.FullDuplexCall(t.Context()); err == nil {
		_, _ = stream.Recv()
	}
	if n := s.effects.Load(); n != 1 {
		t.Errorf("%d streams reached the service, want the one without a key", n)
	}
}

// A stream that needs a key would run unprotected without one.
func TestStream_Required_IsRefusedWithoutKey(t *testing.T) {
	intercept := StreamServerInterceptor("/bank.v1.Bank/PayMany")
	for method, refused := range map[string]bool{"/bank.v1.Bank/PayMany": true, "/bank.v1.Bank/Watch": false} {
		ran := false
		err := intercept(nil, serverStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: method}, func(any, grpc.ServerStream) error {
			ran = true
			return nil
		})
		if ran == refused {
			t.Errorf("%s: ran %v", method, ran)
		}
		if refused {
			wantRefusal(t, err, codes.Unimplemented, "STREAM", false)
		}
	}
}

// serverStream is a stream without a client.
type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s serverStream) Context() context.Context { return s.ctx }
