module github.com/semel-go/semel/semelconnect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/semel-go/semel v0.0.0
	google.golang.org/protobuf v1.36.12
)
