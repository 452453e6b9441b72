package semelmcp_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelmcp"
	"github.com/semel-go/semel/store/memstore"
)

// Payment is the input of the tool "pay".
type Payment struct {
	Key   string `json:"idempotency_key" jsonschema:"a new UUID for each new payment; the same one when you repeat a call"`
	Cents int    `json:"cents" jsonschema:"the amount"`
}

// Receipt is its output.
type Receipt struct {
	Number int `json:"number"`
}

// pay handles a call.
func pay(ctx context.Context, _ *mcp.CallToolRequest, p Payment) (*mcp.CallToolResult, Receipt, error) {
	if x, ok := semel.FromContext(ctx); ok {
		fmt.Println("paying", p.Cents, "cents with the bank's key", x.DownstreamKey("bank") != "")
	}
	return nil, Receipt{4711}, nil
}

// An agent calls the tool twice with one key, and a third time without a key.
func ExampleTool() {
	ctx := context.Background()
	guard, err := semel.New(memstore.New(nil), nil) // in production: pgstore or another database
	if err != nil {
		panic(err)
	}
	once, err := semelmcp.Tool(guard, semelmcp.Options{
		Tenant: semelmcp.Shared, // in production: the authenticated account
		Key:    semelmcp.FromArgument("idempotency_key"),
	}, pay)
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "pay", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, once)

	near, far := mcp.NewInMemoryTransports() // in production: HTTP
	if _, err := server.Connect(ctx, far, nil); err != nil {
		panic(err)
	}
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, near, nil)
	if err != nil {
		panic(err)
	}
	defer agent.Close()
	for _, key := range []string{"order-17", "order-17", ""} {
		res, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: Payment{key, 4200}})
		if err != nil {
			panic(err)
		}
		fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// paying 4200 cents with the bank's key true
	// {"number":4711}
	// {"number":4711}
	// KEY_MISSING: Nothing was done: the call has no idempotency key in the argument "idempotency_key"; send a new UUID for each new operation, and the same one whenever you repeat it
}
