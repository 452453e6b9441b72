// Package webhook is a sink of package outbox for HTTP: it sends each message as a POST
// to the endpoint of its receiver, signed as the specification Standard Webhooks says.
//
//	sink, err := webhook.New(func(ctx context.Context, m *outbox.Message) (webhook.Endpoint, error) {
//		return endpointOf(m.OrderKey) // such as the URL and the secret of a customer
//	}, nil)
//
// A request has the message's headers, and these:
//
//   - Idempotency-Key: the message's ID, as a quoted string. If the ID has other characters
//     than printable ASCII, or a space at an end: "sha256-" and its SHA-256 in hexadecimal
//   - webhook-id: the same without quotes, webhook-timestamp: the time of this attempt in seconds
//   - webhook-signature: "v1," and the HMAC-SHA256 of ID, timestamp and body, in base64
//
// The receiver checks it with [Verify], or with any library of Standard Webhooks, and
// drops repeats by the ID. The request does not name the topic, so messages of two topics to
// one receiver need different IDs. If it uses package semelhttp, its middleware drops them.
//
// A response with 2xx says that the message has arrived. With 400, 405, 410, 413, 414,
// 415, 422, 431 or 501 the message is poison. After any other response, a redirect
// included, or without one, it is sent again later. If a response with 429 or 503 has
// Retry-After, that is no earlier than it says, up to outbox.LongestDelay. The messages of one order key are sent one
// after the other, so give each receiver an order key of its own: then a receiver that is
// down delays only itself. Errors name the scheme and the host of an endpoint only, because
// the rest of its URL can be a secret.
package webhook
