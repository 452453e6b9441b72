package refusals

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelconnect"
	"github.com/semel-go/semel/semelgrpc"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

const unaryCall = "/grpc.testing.TestService/UnaryCall"

type (
	request  = grpc_testing.SimpleRequest
	response = grpc_testing.SimpleResponse
	method   func(ctx context.Context) (*response, error)
	caller   func(ctx context.Context, key string, size int32) (*response, error)
)

// protocol has a server with one protected method, and a client for a server of either.
type protocol struct {
	serve   func(t *testing.T, g *semel.Guard, m method) (address string)
	dial    func(t *testing.T, address string) caller
	outcome func(proto.Message) store.Outcome
	failure error // which leaves the inner call in doubt
}

type grpcService struct {
	grpc_testing.UnimplementedTestServiceServer
	method
}

func (s *grpcService) UnaryCall(ctx context.Context, _ *request) (*response, error) {
	return s.method(ctx)
}

var overGRPC = protocol{
	serve: func(t *testing.T, g *semel.Guard, m method) string {
		protect, err := semelgrpc.UnaryServerInterceptor(g, semelgrpc.Options{Tenant: semelgrpc.Shared})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.UnaryInterceptor(protect))
		grpc_testing.RegisterTestServiceServer(server, &grpcService{method: m})
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		return l.Addr().String()
	},
	dial: func(t *testing.T, address string) caller {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		client := grpc_testing.NewTestServiceClient(conn)
		return func(ctx context.Context, key string, size int32) (*response, error) {
			return client.UnaryCall(metadata.AppendToOutgoingContext(ctx, "idempotency-key", key), &request{ResponseSize: size})
		}
	},
	outcome: semelgrpc.Outcome,
	failure: status.Error(codes.Internal, "the answer of the bank was lost"),
}

var overConnect = protocol{
	serve: func(t *testing.T, g *semel.Guard, m method) string {
		protect, err := semelconnect.NewInterceptor(g, semelconnect.Options{Tenant: semelconnect.Shared})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle(unaryCall, connect.NewUnaryHandler(unaryCall, func(ctx context.Context, _ *connect.Request[request]) (*connect.Response[response], error) {
			msg, err := m(ctx)
			if err != nil {
				return nil, err
			}
			return connect.NewResponse(msg), nil
		}, connect.WithInterceptors(protect)))
		server := httptest.NewUnstartedServer(mux)
		server.Config.Protocols = plainHTTP2()
		server.Start()
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	},
	dial: func(t *testing.T, address string) caller {
		transport := &http.Transport{Protocols: plainHTTP2()}
		t.Cleanup(transport.CloseIdleConnections)
		client := connect.NewClient[request, response](&http.Client{Transport: transport}, "http://"+address+unaryCall, connect.WithGRPC())
		return func(ctx context.Context, key string, size int32) (*response, error) {
			req := connect.NewRequest(&request{ResponseSize: size})
			req.Header().Set("Idempotency-Key", key)
			resp, err := client.CallUnary(ctx, req)
			if err != nil {
				return nil, err
			}
			return resp.Msg, nil
		}
	},
	outcome: semelconnect.Outcome,
	failure: connect.NewError(connect.CodeInternal, context.DeadlineExceeded),
}

// plainHTTP2 is HTTP/2 without TLS, which gRPC needs.
func plainHTTP2() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

func guardOf(t *testing.T, p semel.Policy) *semel.Guard {
	t.Helper()
	g, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: p, Backoff: func(int) time.Duration { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A protected method calls another one, and returns its error. When the other service has a
// result, the caller of the first gets it.
func TestUnary_RefusalOverTheOtherProtocol_IsNotKept(t *testing.T) {
	for name, c := range map[string]struct{ outer, inner protocol }{
		"a Connect server calls a gRPC server": {overConnect, overGRPC},
		"a gRPC server calls a Connect server": {overGRPC, overConnect},
	} {
		t.Run(name+", outcome unknown", func(t *testing.T) {
			guard := guardOf(t, semel.Park)
			inner := c.outer.dial(t, c.inner.serve(t, guard, func(context.Context) (*response, error) { return nil, c.inner.failure }))
			outer := c.outer.dial(t, c.outer.serve(t, guardOf(t, semel.Retry), func(ctx context.Context) (*response, error) { return inner(ctx, "inner", 1) }))
			for range 2 { // the second gets the refusal
				if _, err := outer(t.Context(), "k", 1); err == nil {
					t.Fatal("a call in doubt has a result")
				}
			}
			r, err := guard.Get(t.Context(), semel.Call{Operation: unaryCall, Tenant: semel.Shared, Key: "inner"})
			if err != nil {
				t.Fatal(err)
			}
			if err := guard.Resolve(t.Context(), r, semel.Happened(c.inner.outcome(&response{Username: "paid"}))); err != nil {
				t.Fatal(err)
			}
			if got, err := outer(t.Context(), "k", 1); got.GetUsername() != "paid" {
				t.Errorf("after the verdict: %v, %v; want paid", got, err)
			}
		})
		t.Run(name+", payload mismatch", func(t *testing.T) {
			inner := c.outer.dial(t, c.inner.serve(t, guardOf(t, semel.Retry), func(context.Context) (*response, error) {
				return &response{Username: "paid"}, nil
			}))
			if _, err := inner(t.Context(), "inner", 1); err != nil {
				t.Fatal(err)
			}
			var size atomic.Int32 // the method sends another message at first
			outer := c.outer.dial(t, c.outer.serve(t, guardOf(t, semel.Retry), func(ctx context.Context) (*response, error) {
				return inner(ctx, "inner", size.Load())
			}))
			if _, err := outer(t.Context(), "k", 1); err == nil {
				t.Fatal("another message has the result")
			}
			size.Store(1)
			if got, err := outer(t.Context(), "k", 1); got.GetUsername() != "paid" {
				t.Errorf("with the right message: %v, %v; want paid", got, err)
			}
		})
	}
}
