module github.com/semel-go/semel/semelconnect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/semel-go/semel v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/protobuf v1.36.12
)
