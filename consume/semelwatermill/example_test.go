package semelwatermill_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelwatermill"
	"github.com/semel-go/semel/store/memstore"
)

// bill handles an order, and publishes its bill.
func bill(msg *message.Message) ([]*message.Message, error) {
	fmt.Println("billing", string(msg.Payload))
	return []*message.Message{message.NewMessage(watermill.NewUUID(), message.Payload("bill of "+string(msg.Payload)))}, nil
}

// book handles a bill.
func book(msg *message.Message) error {
	fmt.Println("booking", string(msg.Payload))
	return nil
}

// routes makes a router whose two handlers take each message once.
func routes(guard *semel.Guard, broker *gochannel.GoChannel) (*message.Router, error) {
	billing, err := semelwatermill.Handler(guard, consume.Keyed("billing", consume.BrokerID()), bill, nil)
	if err != nil {
		return nil, err
	}
	booking, err := semelwatermill.NoPublishHandler(guard, consume.Keyed("booking", consume.BrokerID()), book, nil)
	if err != nil {
		return nil, err
	}
	poison, err := middleware.PoisonQueueWithFilter(broker, "poison", semelwatermill.ForPoisonQueue)
	if err != nil {
		return nil, err
	}
	router := message.NewDefaultRouter(nil)
	router.AddMiddleware(poison)
	router.AddHandler("billing", "orders", broker, "bills", broker, billing)
	router.AddConsumerHandler("booking", "bills", broker, booking)
	return router, nil
}

// The producer sends an order twice. Its bill is published twice, with one UUID.
func Example() {
	guard, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		panic(err)
	}
	broker := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil)
	router, err := routes(guard, broker)
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- router.Run(context.Background()) }()
	<-router.Running()
	for range 2 {
		if err := broker.Publish("orders", message.NewMessage("0197a2c4", message.Payload("order-17"))); err != nil {
			panic(err)
		}
	}
	fmt.Println(router.Close(), <-ended)
	// Output:
	// billing order-17
	// booking bill of order-17
	// <nil> <nil>
}
