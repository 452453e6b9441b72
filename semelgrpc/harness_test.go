package semelgrpc

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

const unaryCall = "/grpc.testing.TestService/UnaryCall"

// service counts its effects, and answers as answer says.
type service struct {
	grpc_testing.UnimplementedTestServiceServer
	effects atomic.Int32
	answer  func(ctx context.Context, n int32) (*grpc_testing.SimpleResponse, error)
}

func (s *service) UnaryCall(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	return s.answer(ctx, s.effects.Add(1))
}

func (s *service) FullDuplexCall(grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error {
	s.effects.Add(1)
	return nil
}

func named(_ context.Context, n int32) (*grpc_testing.SimpleResponse, error) {
	return &grpc_testing.SimpleResponse{Username: fmt.Sprint("effect ", n)}, nil
}

func guardOf(t *testing.T, o *semel.Options) *semel.Guard {
	t.Helper()
	return guardOver(t, memstore.New(nil), o)
}

func guardOver(t *testing.T, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// serve starts a server on a free port, and returns its client.
func serve(t *testing.T, s *service, run semel.Runner, o Options) grpc_testing.TestServiceClient {
	t.Helper()
	if o.Tenant == nil {
		o.Tenant = Shared
	}
	protect, err := UnaryServerInterceptor(run, o)
	if err != nil {
		t.Fatal(err)
	}
	recovering := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = status.Errorf(codes.Internal, "panic: %v", p)
			}
		}()
		return next(ctx, req)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(recovering, protect), grpc.ChainStreamInterceptor(StreamServerInterceptor()))
	grpc_testing.RegisterTestServiceServer(server, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpc_testing.NewTestServiceClient(conn)
}

func withKey(ctx context.Context, key string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "idempotency-key", key)
}

// send calls the method; replayed says whether the answer has the header of a replay.
func send(ctx context.Context, c grpc_testing.TestServiceClient, size int32) (name string, replayed bool, err error) {
	var h metadata.MD
	resp, err := c.UnaryCall(ctx, &grpc_testing.SimpleRequest{ResponseSize: size}, grpc.Header(&h))
	return resp.GetUsername(), len(h.Get("idempotent-replayed")) > 0, err
}

// wantRefusal checks the code, the reason and whether there is a RetryInfo.
func wantRefusal(t *testing.T, err error, code codes.Code, reason string, retry bool) {
	t.Helper()
	s := status.Convert(err)
	gotReason, gotRetry := "", false
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			gotReason = d.Reason
		case *errdetails.RetryInfo:
			gotRetry = d.RetryDelay.AsDuration() > 0
		}
	}
	if s.Code() != code || gotReason != reason || gotRetry != retry {
		t.Errorf("got %v %q, RetryInfo %v, want %v %q, %v; %v", s.Code(), gotReason, gotRetry, code, reason, retry, err)
	}
}
