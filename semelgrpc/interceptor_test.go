package semelgrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

func TestUnary_SixteenDuplicates_OneEffectAndOneAnswer(t *testing.T) {
	s := &service{answer: named}
	c := serve(t, s, guardOf(t, nil), Options{Wait: time.Minute})
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		replayed int
	)
	for range 16 {
		wg.Go(func() {
			name, again, err := send(withKey(t.Context(), "k"), c, 1)
			if err != nil || name != "effect 1" {
				t.Errorf("got %q, %v", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if again {
				replayed++
			}
		})
	}
	wg.Wait()
	if n := s.effects.Load(); n != 1 || replayed != 15 {
		t.Errorf("%d effects and %d replays, want 1 and 15", n, replayed)
	}
}

func TestUnary_EachCode_FollowsTheTable(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for policy, doubt := range map[semel.Policy]int32{semel.Retry: 2, semel.Park: 1} {
			t.Run(fmt.Sprint(code, policy), func(t *testing.T) {
				s := &service{answer: func(context.Context, int32) (*grpc_testing.SimpleResponse, error) {
					st, err := status.New(code, "no").WithDetails(&errdetails.ErrorInfo{Reason: "OWN"})
					if err != nil {
						return nil, err
					}
					return nil, st.Err()
				}}
				c := serve(t, s, guardOf(t, &semel.Options{OnDoubt: policy}), Options{})
				_, replayed, err := send(withKey(t.Context(), "k"), c, 1)
				wantRefusal(t, err, code, "OWN", false)
				if replayed || status.Convert(err).Message() != "no" {
					t.Errorf("the first answer is %v, replayed %v", err, replayed)
				}
				_, replayed, err = send(withKey(t.Context(), "k"), c, 1)
				want, wantReplay := doubt, false
				switch code {
				case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
					want, wantReplay = 1, true
				case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.Aborted:
					want = 2
				default:
					if policy == semel.Park {
						wantRefusal(t, err, codes.FailedPrecondition, "OUTCOME_UNKNOWN", false)
						err = nil
					}
				}
				if err != nil {
					wantRefusal(t, err, code, "OWN", false)
					if status.Convert(err).Message() != "no" {
						t.Errorf("the second message is %q", status.Convert(err).Message())
					}
				}
				if n := s.effects.Load(); n != want || replayed != wantReplay {
					t.Errorf("ran %d times, replayed %v; want %d, %v", n, replayed, want, wantReplay)
				}
			})
		}
	}
}

func TestUnary_HandlerMarksOrReturnsPlainError_CodeIsKeptForTheCaller(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		code    codes.Code
		message string
		parked  bool
	}{
		"plain":              {errors.New("broken"), codes.Unknown, "broken", true},
		"context":            {context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded", true},
		"NoEffect, Internal": {semel.NoEffect(status.Error(codes.Internal, "no room")), codes.Internal, "no room", false},
		"NoEffect, NotFound": {semel.NoEffect(status.Error(codes.NotFound, "later")), codes.NotFound, "later", false},
		"NoEffect, Failure":  {semel.NoEffect(&semel.Failure{Code: "stock", Message: "no room"}), codes.Unknown, "no room", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{answer: func(ctx context.Context, n int32) (*grpc_testing.SimpleResponse, error) {
				if n == 1 {
					return nil, c.err
				}
				return named(ctx, n)
			}}
			client := serve(t, s, guardOf(t, &semel.Options{OnDoubt: semel.Park}), Options{})
			_, _, err := send(withKey(t.Context(), "k"), client, 1)
			if got := status.Convert(err); got.Code() != c.code || got.Message() != c.message {
				t.Errorf("got %v", err)
			}
			if c.parked {
				_, _, err := send(withKey(t.Context(), "k"), client, 1)
				wantRefusal(t, err, codes.FailedPrecondition, "OUTCOME_UNKNOWN", false)
				return
			}
			for i := range 2 { // the key is free, so the next request may be another one
				if name, replayed, err := send(withKey(t.Context(), "k"), client, 2); err != nil || name != "effect 2" || replayed != (i == 1) {
					t.Errorf("answer %d to another message is %q, replayed %v, %v", i+1, name, replayed, err)
				}
			}
		})
	}
}

func TestUnary_Panic_IsInDoubt(t *testing.T) {
	s := &service{answer: func(context.Context, int32) (*grpc_testing.SimpleResponse, error) { panic("ouch") }}
	c := serve(t, s, guardOf(t, &semel.Options{OnDoubt: semel.Park}), Options{})
	_, _, err := send(withKey(t.Context(), "k"), c, 1)
	if status.Convert(err).Message() != "panic: ouch" {
		t.Errorf("the interceptor outside did not get the panic: %v", err)
	}
	_, _, err = send(withKey(t.Context(), "k"), c, 1)
	wantRefusal(t, err, codes.FailedPrecondition, "OUTCOME_UNKNOWN", false)
}

func TestUnary_CallerLeavesWhileMethodRuns_DuplicateGetsAnswer(t *testing.T) {
	started := make(chan struct{})
	s := &service{answer: func(ctx context.Context, n int32) (*grpc_testing.SimpleResponse, error) {
		close(started)
		<-ctx.Done()
		return named(ctx, n) // the effect happened, although nobody waits for it
	}}
	c := serve(t, s, guardOf(t, nil), Options{Wait: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, _, err := send(withKey(ctx, "k"), c, 1)
	if status.Code(err) != codes.Canceled {
		t.Errorf("the caller that left got %v", err)
	}
	name, replayed, err := send(withKey(t.Context(), "k"), c, 1)
	if err != nil || name != "effect 1" || !replayed {
		t.Errorf("got %q, replayed %v, %v", name, replayed, err)
	}
}

func TestUnary_DeadlineOfCaller_IsInDoubt(t *testing.T) {
	s := &service{answer: func(ctx context.Context, _ int32) (*grpc_testing.SimpleResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	c := serve(t, s, guardOf(t, &semel.Options{OnDoubt: semel.Park}), Options{Wait: time.Minute})
	for s.effects.Load() == 0 { // until a request reaches the method before its deadline
		ctx, cancel := context.WithTimeout(withKey(t.Context(), "k"), 100*time.Millisecond)
		_, _, err := send(ctx, c, 1)
		cancel()
		if status.Code(err) == codes.FailedPrecondition && s.effects.Load() > 0 {
			break // the request before it has reached the method after all
		}
		if status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("got %v", err)
		}
	}
	_, _, err := send(withKey(t.Context(), "k"), c, 1)
	wantRefusal(t, err, codes.FailedPrecondition, "OUTCOME_UNKNOWN", false)
}

func TestUnary_InProgressOnAnotherServer_IsAbortedWithRetryInfo(t *testing.T) {
	st := memstore.New(nil)
	started, end := make(chan struct{}), make(chan struct{})
	s := &service{answer: func(ctx context.Context, n int32) (*grpc_testing.SimpleResponse, error) {
		close(started)
		<-end
		return named(ctx, n)
	}}
	first, second := serve(t, s, guardOver(t, st, nil), Options{}), serve(t, s, guardOver(t, st, nil), Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if name, _, err := send(withKey(t.Context(), "k"), first, 1); err != nil || name != "effect 1" {
			t.Errorf("the first request got %q, %v", name, err)
		}
	})
	<-started
	_, _, err := send(withKey(t.Context(), "k"), second, 1)
	wantRefusal(t, err, codes.Aborted, "IN_PROGRESS", true)
	for _, d := range status.Convert(err).Details() {
		if again, ok := d.(*errdetails.RetryInfo); ok && again.RetryDelay.AsDuration() > 10*time.Second {
			t.Errorf("a duplicate of a run of some milliseconds is to come after %v", again.RetryDelay.AsDuration())
		}
	}
	_, _, err = send(withKey(t.Context(), "k"), second, 2)
	wantRefusal(t, err, codes.InvalidArgument, "PAYLOAD_MISMATCH", false)
	close(end)
	wg.Wait()
	if name, replayed, err := send(withKey(t.Context(), "k"), second, 1); err != nil || name != "effect 1" || !replayed || s.effects.Load() != 1 {
		t.Errorf("afterwards a duplicate got %q, replayed %v, %v, after %d effects", name, replayed, err, s.effects.Load())
	}
}

func TestUnary_Refused_HasReasonAndNoEffect(t *testing.T) {
	s := &service{answer: named}
	tenant := func(ctx context.Context) (string, error) {
		return strings.Join(metadata.ValueFromIncomingContext(ctx, "account"), ""), nil
	}
	c := serve(t, s, guardOf(t, nil), Options{Tenant: tenant, Required: []string{unaryCall}})
	ann := metadata.AppendToOutgoingContext(t.Context(), "account", "ann")
	_, _, err := send(ann, c, 1)
	wantRefusal(t, err, codes.InvalidArgument, "KEY_MISSING", false)
	_, _, err = send(withKey(ann, "a b"), c, 1)
	wantRefusal(t, err, codes.InvalidArgument, "KEY_MALFORMED", false)
	_, _, err = send(withKey(withKey(ann, "a"), "b"), c, 1)
	wantRefusal(t, err, codes.InvalidArgument, "KEY_MALFORMED", false)
	_, _, err = send(withKey(t.Context(), "k"), c, 1)
	wantRefusal(t, err, codes.Unauthenticated, "TENANT_MISSING", false)
	if n := s.effects.Load(); n != 0 {
		t.Errorf("%d effects", n)
	}
	if _, _, err = send(withKey(ann, "k"), c, 1); err != nil {
		t.Error(err)
	}
	_, _, err = send(withKey(ann, `"k"`), c, 2)
	wantRefusal(t, err, codes.InvalidArgument, "PAYLOAD_MISMATCH", false)
	bob := metadata.AppendToOutgoingContext(t.Context(), "account", "bob")
	for i, step := range []struct {
		account context.Context
		size    int32
		want    string
	}{{bob, 2, "effect 2"}, {ann, 1, "effect 1"}, {bob, 2, "effect 2"}} {
		if name, replayed, err := send(withKey(step.account, "k"), c, step.size); err != nil || name != step.want || replayed != (i > 0) {
			t.Errorf("call %d of two accounts with the same key got %q, replayed %v, %v", i, name, replayed, err)
		}
	}
}

func TestUnary_WithoutKey_RunsEachTime(t *testing.T) {
	s := &service{answer: named}
	c := serve(t, s, guardOf(t, nil), Options{})
	for range 2 {
		if _, replayed, err := send(t.Context(), c, 1); err != nil || replayed {
			t.Errorf("got replayed %v, %v", replayed, err)
		}
	}
	if n := s.effects.Load(); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

func TestUnary_ResponseTooLarge_ReplaySaysThatItHappened(t *testing.T) {
	s := &service{answer: func(context.Context, int32) (*grpc_testing.SimpleResponse, error) {
		return &grpc_testing.SimpleResponse{Username: strings.Repeat("x", 2000)}, nil
	}}
	c := serve(t, s, guardOf(t, &semel.Options{MaxOutcome: 1000}), Options{})
	if name, _, err := send(withKey(t.Context(), "k"), c, 1); err != nil || len(name) != 2000 {
		t.Errorf("the first answer has %d bytes, %v", len(name), err)
	}
	_, _, err := send(withKey(t.Context(), "k"), c, 1)
	wantRefusal(t, err, codes.FailedPrecondition, "RESULT_NOT_KEPT", false)
}

func TestNew_Options_ErrorNamesEachFault(t *testing.T) {
	_, err := UnaryServerInterceptor(nil, Options{Required: []string{"Pay"}})
	for _, want := range []string{"run: is nil", "Options.Tenant", `"Pay"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}
