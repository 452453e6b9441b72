package semelconnect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

type (
	number = wrapperspb.Int64Value
	text   = wrapperspb.StringValue
)

const pay = "/bank.v1.Bank/Pay"

// serve starts a server whose method counts its effects, and returns its client.
func serve(t *testing.T, g *semel.Options, o Options, effects *atomic.Int32, answer func(ctx context.Context, n int32) (*text, error), co ...connect.ClientOption) *connect.Client[number, text] {
	t.Helper()
	return serveOver(t, memstore.New(nil), g, o, effects, answer, co...)
}

// serveOver is serve with a store that several servers share.
func serveOver(t *testing.T, st store.Store, g *semel.Options, o Options, effects *atomic.Int32, answer func(ctx context.Context, n int32) (*text, error), co ...connect.ClientOption) *connect.Client[number, text] {
	t.Helper()
	guard, err := semel.New(st, g)
	if err != nil {
		t.Fatal(err)
	}
	return serveRunner(t, guard, o, effects, answer, co...)
}

// serveRunner is serve with a Runner of the test.
func serveRunner(t *testing.T, run semel.Runner, o Options, effects *atomic.Int32, answer func(ctx context.Context, n int32) (*text, error), co ...connect.ClientOption) *connect.Client[number, text] {
	t.Helper()
	server := listen(t, run, o, effects, answer)
	return connect.NewClient[number, text](server.Client(), server.URL+pay, co...)
}

// watch is a method that returns a stream.
const watch = "/bank.v1.Bank/Watch"

// listen starts a server with the methods pay and watch.
func listen(t *testing.T, run semel.Runner, o Options, effects *atomic.Int32, answer func(ctx context.Context, n int32) (*text, error)) *httptest.Server {
	t.Helper()
	if o.Tenant == nil {
		o.Tenant = Shared
	}
	protect, err := NewInterceptor(run, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	recovered := connect.WithRecover(func(_ context.Context, _ connect.Spec, _ http.Header, p any) error {
		return connect.NewError(connect.CodeInternal, fmt.Errorf("panic: %v", p))
	})
	mux.Handle(pay, connect.NewUnaryHandler(pay, func(ctx context.Context, _ *connect.Request[number]) (*connect.Response[text], error) {
		msg, err := answer(ctx, effects.Add(1))
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(msg), nil
	}, recovered, connect.WithInterceptors(protect)))
	mux.Handle(watch, connect.NewServerStreamHandler(watch,
		func(context.Context, *connect.Request[number], *connect.ServerStream[text]) error {
			effects.Add(1)
			return nil
		}, connect.WithInterceptors(protect)))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func send(ctx context.Context, c *connect.Client[number, text], key string, n int64) (string, bool, error) {
	req := connect.NewRequest(wrapperspb.Int64(n))
	if key != "" {
		req.Header().Set("Idempotency-Key", key)
	}
	resp, err := c.CallUnary(ctx, req)
	if e, ok := errors.AsType[*connect.Error](err); ok {
		return "", e.Meta().Get("Idempotent-Replayed") == "true", err
	} else if err != nil {
		return "", false, err
	}
	return resp.Msg.GetValue(), resp.Header().Get("Idempotent-Replayed") == "true", nil
}

func named(_ context.Context, n int32) (*text, error) {
	return wrapperspb.String(fmt.Sprint("effect ", n)), nil
}

func TestUnary_SixteenDuplicates_OneEffectAndOneAnswer(t *testing.T) {
	for name, co := range map[string][]connect.ClientOption{"Connect": nil, "Connect JSON": {connect.WithProtoJSON()}, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}} {
		t.Run(name, func(t *testing.T) {
			var effects, replays atomic.Int32
			c := serve(t, nil, Options{Wait: time.Minute}, &effects, named, co...)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					name, replayed, err := send(t.Context(), c, "k", 1)
					if err != nil || name != "effect 1" {
						t.Errorf("got %q, %v", name, err)
					}
					if replayed {
						replays.Add(1)
					}
				})
			}
			wg.Wait()
			if effects.Load() != 1 || replays.Load() != 15 {
				t.Errorf("%d effects and %d replays, want 1 and 15", effects.Load(), replays.Load())
			}
		})
	}
}

func TestUnary_EachCode_FollowsTheTable(t *testing.T) {
	for code := connect.CodeCanceled; code <= connect.CodeUnauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			var effects atomic.Int32
			c := serve(t, &semel.Options{OnDoubt: semel.Park}, Options{}, &effects, func(context.Context, int32) (*text, error) {
				e := connect.NewError(code, errors.New("no"))
				d, err := connect.NewErrorDetail(durationpb.New(7))
				if err != nil {
					return nil, err
				}
				e.AddDetail(d)
				return nil, e
			})
			for i := range 2 {
				_, replayed, err := send(t.Context(), c, "k", 1)
				want, wantRuns, wantReplay, own := code, int32(1), false, true
				switch code {
				case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodeAlreadyExists, connect.CodeFailedPrecondition, connect.CodeOutOfRange:
					wantReplay = i == 1
				case connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeUnimplemented, connect.CodeAborted:
					wantRuns = int32(i + 1)
				default:
					if i == 1 {
						want, own = connect.CodeFailedPrecondition, false
					}
				}
				e, _ := errors.AsType[*connect.Error](err)
				if e == nil || e.Code() != want || len(e.Details()) != 1 || own != (e.Details()[0].Type() == "google.protobuf.Duration") || own != (e.Message() == "no") || replayed != wantReplay || effects.Load() != wantRuns {
					t.Errorf("call %d: got %v, replayed %v, %d runs; want %v, %v, %d", i+1, err, replayed, effects.Load(), want, wantReplay, wantRuns)
				}
			}
		})
	}
}

func TestUnary_PanicOrDeadline_IsInDoubt(t *testing.T) {
	for name, answer := range map[string]func(context.Context, int32) (*text, error){
		"panic":    func(context.Context, int32) (*text, error) { panic("ouch") },
		"deadline": func(ctx context.Context, _ int32) (*text, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			var effects atomic.Int32
			c := serve(t, &semel.Options{OnDoubt: semel.Park}, Options{Wait: time.Minute}, &effects, answer)
			for effects.Load() == 0 { // until a request reaches the method before its deadline
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				if _, _, err := send(ctx, c, "k", 1); err == nil {
					t.Error("there was no error")
				}
				cancel()
			}
			if _, _, err := send(t.Context(), c, "k", 1); connect.CodeOf(err) != connect.CodeFailedPrecondition || effects.Load() != 1 {
				t.Errorf("got %v, %d effects", err, effects.Load())
			}
		})
	}
}

func TestUnary_Refused_NoEffect(t *testing.T) {
	var effects atomic.Int32
	c := serve(t, nil, Options{Required: []string{pay}}, &effects, named)
	for _, key := range []string{"", "a b"} {
		if _, _, err := send(t.Context(), c, key, 1); connect.CodeOf(err) != connect.CodeInvalidArgument || effects.Load() != 0 {
			t.Errorf("key %q: got %v", key, err)
		}
	}
	if _, _, err := send(t.Context(), c, "k", 1); err != nil {
		t.Error(err)
	}
	if _, _, err := send(t.Context(), c, "k", 2); connect.CodeOf(err) != connect.CodeInvalidArgument || effects.Load() != 1 {
		t.Errorf("another message with the key got %v", err)
	}
}

func TestStream_WithKeyOrRequired_IsRefused(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		required []string
		key      string
		effects  int32
	}{"with a key": {nil, "k", 0}, "without a key": {[]string{pay}, "", 1}, "required": {[]string{pay, watch}, "", 0}, "required, with a key": {[]string{watch}, "k", 0}} {
		t.Run(name, func(t *testing.T) {
			var effects atomic.Int32
			server := listen(t, guard, Options{Required: c.required}, &effects, named)
			req := connect.NewRequest(wrapperspb.Int64(1))
			if c.key != "" {
				req.Header().Set("Idempotency-Key", c.key)
			}
			stream, err := connect.NewClient[number, text](server.Client(), server.URL+watch).CallServerStream(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			for stream.Receive() {
			}
			err = stream.Err()
			if refused := connect.CodeOf(err) == connect.CodeUnimplemented; refused != (c.effects == 0) || !refused && err != nil || effects.Load() != c.effects {
				t.Errorf("got %v after %d effects; want %d", err, effects.Load(), c.effects)
			}
		})
	}
}

// A repeat does not mend a record, so there is no Retry-After.
func TestRefusalOf_RecordUnreadable_FailedPrecondition(t *testing.T) {
	err := refusalOf(t.Context(), "/m", &semel.Error{Reason: store.ErrCorrupt, Cause: errors.New("secret")})
	var e *connect.Error
	if !errors.As(err, &e) || e.Code() != connect.CodeFailedPrecondition || e.Meta().Get("Retry-After") != "" || strings.Contains(e.Message(), "secret") {
		t.Errorf("%v", err)
	}
}
