package proxy

import (
	"net/http"
	"time"
)

// A busy machine must not change the counts of a test.
func init() { twinPatience = time.Minute }

// Parking are the operations of a round of questions, in its order.
func (p *Proxy) Parking() ([]string, error) {
	var names []string
	ops, err := p.parkingOperations()
	for _, op := range ops {
		names = append(names, op.operation)
	}
	return names, err
}

// InFlight is the number of requests in flight.
func (p *Proxy) InFlight() int64 { return p.inFlight.Load() }

// Server is the server for clients, with another handler.
func (p *Proxy) Server(h http.Handler) *http.Server { return p.server(h) }
