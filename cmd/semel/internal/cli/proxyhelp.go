package cli

import "github.com/semel-go/semel/cmd/semel/internal/scope"

// Help implements kong.HelpProvider.
func (*proxyCmd) Help() string {
	return `Clients send an Idempotency-Key with a POST or PATCH, and may send the request again as often as they need. The service behind gets it once; every duplicate gets the first answer, byte for byte, with "Idempotent-Replayed: true".

Examples:

    semel proxy --upstream http://127.0.0.1:3000 --scope single
    semel proxy --upstream http://127.0.0.1:3000 --scope header:X-Account --store sqlite:/var/lib/semel.db
    semel proxy --upstream http://api:3000 --scope jwt:sub --jwks https://id.example/jwks.json --config semel.yaml

Each option can also come from the environment, as SEMEL_ and its name (--admin-listen: SEMEL_ADMIN_LISTEN), or from the file of --config. A flag goes before the environment, that before the file.

WHAT IS PROMISED

    on-doubt retry   one recorded answer for each key, and equal replays. After a
                     crash, a timeout or a 5xx the same request may reach the
                     service again: it can tell by Semel-Fence and Semel-Attempt.
    on-doubt park    nothing reaches the service again by itself once it may have
                     had an effect. The key answers 409 outcome_unknown until
                     --reconcile-url or semel inspect resolve says what happened.

Doubt is: the answer was lost or came too late, the service answered 5xx, the proxy died. It is not: the service could not be connected to (503, nothing was sent), or answered 401, 403, 408, 425 or 429 (nothing was done). A service that knows better says so in its answer: "Semel-Result: final" keeps it, "Semel-Result: no-effect" lets the request run again.

WHERE THE RECORDS ARE (--store)

The query of a URL may hold options of the store:

    postgres://…?semel-schema=NAME      the schema of its tables (default semel)
                 semel-notify=on        waiting duplicates are told, and do not poll
    redis://…?   semel-prefix=TEXT      the prefix of its keys (default semel:)
                 semel-replicas=N       so many replicas must acknowledge a change
                 semel-fsync            and it must be on the disk
                 semel-allow-park       take on-doubt park, of which a crash or a
                                        fail-over of Redis may break the promise
                 semel-allow-eviction   take a server that may forget records

semel doctor says what a server's settings may lose; the proxy starts on it all the same, and logs that as warnings. rediss:, redis+cluster: and redis+sentinel: are URLs, too.

WHOSE KEYS (--scope)

` + indent(scope.Choices) + `

A request whose tenant cannot be told is answered 401. The key set of a URL is fetched by the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY say; the service and the hooks are never reached through one.

WHAT THE SERVICE GETS

    Idempotency-Key       as the client sent it
    Semel-Fence           a number that grows with each attempt of a key; refuse
                          those that are lower than one you have seen
    Semel-Attempt         1 for the first
    Semel-Request-Digest  a hash of the request, equal for each attempt
    X-Forwarded-For, -Host, -Proto

Semel-* headers of clients are removed. A request is never sent twice by itself.

RECONCILING (--reconcile-url, with on-doubt park)

    POST {"operation":"http","tenant":"ann","key":"k1","request_digest":"9f…",
          "fence":1795000000000000,"attempts":1,"first_seen":"2026-11-20T10:00:00Z"}

    {"happened":true,"response":{"status":201,"headers":{"Location":"/p/1"},"body":"{}"}}
                                        it happened: duplicates get this answer
                                        ("body_base64" for a body that is no text)
    {"happened":false,"final":true}     it did not happen and never will: the next
                                        request goes to the service
    {"happened":null}                   not known: it stays parked, and is asked
                                        about again

Anything else is "not known" too: another status than 200, another Content-Type than application/json, no answer in time, "happened":true without a response, and "happened":false without "final":true, for the request may still be on its way. To answer "final", first see to it that a request with this key and a Semel-Fence lower than "fence" is refused from now on. It is asked when a duplicate comes, and every --reconcile-every.

REPLAYS AND RIGHTS (--authorize-url)

Before a kept answer is shown, a GET with the headers of the request, without its body, and with X-Forwarded-Method and X-Forwarded-Uri goes to this URL. 2xx shows the answer; 401 and 403 are given to the client; anything else is 503. A first request is not asked about: the service does that.

REFUSALS (RFC 9457)

A refusal is a problem document with a "code" that is stable: one of package semelhttp, whose documentation lists them, or

    408  body_timeout            the client fell silent in its body: with a key (then
                                 --body-timeout says when) nothing was sent
    503  upstream_unreachable    nothing was sent to the service
    502  upstream_lost           it was sent, and no answer came: doubt
    504  upstream_timeout        it was sent, and no answer came in time: doubt
    503  authorizer_unavailable  --authorize-url could not be asked
    400  bad_target, bad_path, protected_header, ambiguous_header, upgrade_refused
    501  not_proxied             CONNECT

THE FILE (--config)

    upstream: http://127.0.0.1:3000
    scope: header:X-Account
    on-doubt: retry
    rules:                        # patterns of Go's ServeMux; the most specific wins
      - match: POST /payments
        on-doubt: park
        wait: 5s
      - match: POST /tokens
        no-store: true            # done is kept, the answer is not
      - match: POST /orders
        key-from: [order.id]      # for clients that send no key
        require-key: false        # and if there is no order.id, it passes
        upstream-timeout: 2m
      - match: /uploads/
        pass-through: true

A rule can set on-doubt, methods, require-key, key-from, wait, retention, no-store, keep-5xx, upstream-timeout, pass-through and operation, whatever flags say. Rules can change without harm, but for a new "operation": under another name, kept keys are not found. With rules, paths with empty or dot segments are refused (400).

ADMIN (--admin-listen)

    /healthz  200 while the process lives
    /readyz   200 while it can serve: the store answers, tokens can be verified,
              and no stop has begun; else 503
    /metrics  counts of what happened, by kind, operation and rule

SIGTERM and SIGINT turn /readyz to 503, close the listener, and wait --drain for requests in flight. Connections that have switched to another protocol, such as WebSockets, are not waited for: they end with the process. Exit codes: 0 stopped cleanly, 1 failed, 2 wrong options.`
}
