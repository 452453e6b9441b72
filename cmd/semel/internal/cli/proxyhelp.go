package cli

import "github.com/semel-go/semel/cmd/semel/internal/scope"

// Help implements kong.HelpProvider.
func (*proxyCmd) Help() string {
	return `Clients send an Idempotency-Key with a POST or PATCH, and may send the request again as often as they need. The service behind gets it once; every duplicate gets the first answer, byte for byte, with "Idempotent-Replayed: true".

Examples:

    semel proxy --upstream http://127.0.0.1:3000 --scope single
    semel proxy --upstream http://127.0.0.1:3000 --scope header:X-Account --store sqlite:/var/lib/semel.db
    semel proxy --upstream http://api:3000 --scope jwt:sub --jwks https://id.example/jwks.json --jwt-issuer https://id.example --jwt-audience api --config semel.yaml

Each option can also come from the environment, as SEMEL_ and its name (--admin-listen: SEMEL_ADMIN_LISTEN), or from the file of --config. A flag overrides the environment, and the environment overrides the file. An empty variable counts as not set; an empty flag or field is refused where its default is less safe.

WHAT IS PROMISED

    on-doubt retry   one recorded answer for each key, and equal replays. After a
                     crash, a timeout or a 5xx the same request may reach the
                     service again: it can tell by Semel-Fence and Semel-Attempt.
    on-doubt park    nothing reaches the service again by itself once it may have
                     had an effect. The key answers 409 outcome_unknown until
                     --reconcile-url or semel inspect resolve says what happened.

Doubt is: the answer was lost, broke off or came too late, the service answered 5xx or 499, the proxy died. It is not: the service could not be connected to (503, nothing was sent), or its answer says that nothing was done: a redirect that asks for the same request elsewhere (301, 307, 308), a request for credentials, a payment or other headers (401, 402, 403, 407, 412, 428 …), 408, 425, 429, and another 4xx with Retry-After. The page docs/http-answers.md has the whole table. --final-statuses and --no-effect-statuses change it. A service that knows better says so in its answer: "Semel-Result: final" keeps it, "Semel-Result: no-effect" lets the request run again.

A key belongs to a request: method, host, path, query, media type, the headers of --fingerprint-headers, and the body. Another request with the key is answered 422. A multipart form is compared by its parts. A request whose first attempts had no effect may change.

REQUESTS WITHOUT A KEY (--require-key)

A POST without a key passes unprotected, because the log-in form of a page sends none. The first is logged, and semel_unkeyed_requests_total counts all. Once all clients of a path send keys, set require-key in its rule: a client that forgets the key is then answered 400, instead of a second charge. Give --require-key as a flag for a service that only programs call.

With --key-from the key of a request without a key header is looked for in its JSON body. If require-key is not set, these requests have no key and pass: one without the tenant of --scope (no header, or no bearer token), one without a field of --key-from, one without a body, and one whose body is no JSON object. Refused are: a wrong tenant or token (401), a body whose key could be there but cannot be read, such as compressed JSON, a field that occurs twice, or a member whose name differs from that of a field in capitals only, which many services read as the field (400), and a body over --max-body (413), unless its Content-Type names another type than JSON and its Content-Length is given.

TRY IT FIRST (--observe)

With --observe each request and each answer passes unchanged: none is refused, replayed or recorded, no store is opened, and no key is needed. The proxy counts in memory what it would have done with the same options: first calls, duplicates while the first call ran and after it, other requests with the same key, missing and malformed keys, answers in doubt, each by operation and rule, with the next step. Where clients have something to change, it names the method, the path and the first word of User-Agent, and no address. In a path, … stands for each segment that may be an ID: one that is not made of words of letters, each with at most one digit at its end, joined by . : _ or -, or is longer than 40 characters. It prints the counts when it stops (with --json as JSON), serves them at /observed of --admin-listen and in /metrics (semel_observed_requests_total), and logs the totals every five minutes. It remembers --observe-keys keys; beyond them it forgets the older half, whose duplicates then count as first calls. The page docs/observe.md explains each count.

LARGE ANSWERS AND STREAMS (--max-outcome)

The answer to a request with a key is held until it is stored. If it is larger than --max-outcome, it is sent as it comes and not kept: duplicates get its status and Semel-Outcome: not-kept. A stream of events (SSE) that answers such a request is held back until --max-outcome bytes have come, or until it ends. Serve streams by GET or without a key, or set pass-through for them. --upstream-timeout ends a request with a key even while its answer streams.

LIMITS (--tenant-requests, --max-requests)

Each tenant may have --tenant-requests in flight and --tenant-keys in a minute, may hold --tenant-spool bytes of bodies, and may send and get --tenant-bytes bytes of bodies and answers in a minute, replays and answers that are not kept among them; beyond that it is answered 429 tenant_limit. --max-requests, --max-keys and --max-spool bound all tenants together: 503 overloaded. Both answers have a Retry-After, and nothing was done. A quarter of --tenant-spool and of --max-spool is for replays over 64 KiB; a replay beyond it is answered 503 replays_full, with a Retry-After, and its operation is done. The 429 is sent after --refusal-pause. The limits of a minute refill evenly: with --tenant-keys 60000 a tenant that was idle may send 60000 requests at once, and then 1000 a second; of --tenant-bytes an eighth may come at once. /metrics counts each (semel_limit_tenant_requests_refused_total and so on). A warning names the tenant, the limit and the option when a limit begins to refuse; the next comes after a minute without refusals. Requests without a key are of no known tenant: --max-requests bounds them, apart from those with a key; so it bounds WebSockets, too.

A body that --key-from reads is parsed without being held as a whole; bodies over 64 KiB are parsed 16 MiB at a time. Bodies over 64 KiB are in temporary files (TMPDIR; without one, beside the SQLite file).

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
    dynamodb://TABLE?region=NAME        and prefix=TEXT, partition-key=NAME,
                                        sort-key=NAME, ttl=NAME, index=NAME,
                                        index-shards=N, max-skew=TIME,
                                        sweep-expired, endpoint=URL

memory: belongs to one process, and a SQLite file to one machine. With several replicas, each with its own file, a duplicate that reaches another replica takes effect again: choose postgres://, redis:// or dynamodb:// for them. The credentials for DynamoDB come from AWS's usual places, such as AWS_PROFILE or the machine's role.

To move to another store, start all processes with the new --store and --moved-from OLD, copy the rest by semel copy, and drop --moved-from: see semel copy --help. No process may use the old store alone meanwhile.

semel doctor says what a server's settings may lose; the proxy starts on it all the same, and logs that as warnings. rediss:, redis+cluster: and redis+sentinel: are URLs, too.

WHOSE KEYS (--scope)

` + indent(scope.Choices) + `

A request whose tenant cannot be told is answered 401. With header: and jwt-unverified:, any peer that reaches the proxy can name its tenant: set --trusted-gateways, or --tls-client-ca, or a Unix socket (--listen unix:PATH), which its owner and group can use. A peer that is not trusted is answered 403. With jwt:, set --jwt-issuer and --jwt-audience, or tokens for other services are accepted, too. The key set of a URL is fetched by the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY say; the service and the hooks are never reached through one.

WHAT THE SERVICE GETS

    Idempotency-Key       as the client sent it
    Semel-Fence           a number that grows with each attempt of a key; refuse
                          those that are lower than one you have seen
    Semel-Attempt         1 for the first
    Semel-Request-Digest  a hash of the request, equal for each attempt
    Semel-Key-Hash        with --hash-keys-file: the hash of tenant and key
    X-Forwarded-For, -Host, -Proto

Semel-* headers of clients are removed. A connection switches only to the protocols of --upgrades (WebSocket); other offers, such as h2c, are ignored. The record names the method and the path, without the query, for semel inspect. A request is never sent twice by itself. A Location that names the service is rewritten to the name that the client used.

RECONCILING (--reconcile-url, with on-doubt park)

    POST {"operation":"http","tenant":"ann","key":"k1","request_digest":"9f…",
          "fence":1795000000000000,"attempts":1,"first_seen":"2026-11-20T10:00:00Z"}

    {"happened":true,"response":{"status":201,"body":"{}",
                                 "headers":{"Content-Type":"application/json"}}}
                                        it happened: duplicates get this answer
                                        ("body_base64" for a body that is no text)
    {"happened":false,"final":true}     it did not happen and never will: the next
                                        request goes to the service
    {"happened":null}                   not known: it stays parked, and is asked
                                        about again

Anything else is "not known" too: another status than 200, another Content-Type than application/json, no answer in time, "happened":true without a response, and "happened":false without "final":true, because the request may still be on its way. To answer "final", first see to it that a request with this key and a Semel-Fence lower than "fence" is refused from now on. It is asked when a duplicate comes, and every --reconcile-every. With no-store, the status of the answer is kept and nothing else. A round of --reconcile-every cannot tell the rules of one operation apart: it keeps the answer for the longest retention among them, and only the status if one of them has no-store. Where that is too much, give the rule an operation of its own. With --hash-keys-file, "tenant" and "key" are hashes; "key" is the Semel-Key-Hash that the service got.

REPLAYS AND RIGHTS (--authorize-url)

Before a kept answer is shown, and before each refusal that tells that the key was used before (409, 422), a GET with the headers of the request, without its body, its conditions (If-*) and Range, and with X-Forwarded-Method, -Uri, -Host, -Proto and -For goes to this URL. Other X-Forwarded- headers, and names with an underscore, are left out, unless the tenant is in them or --protected-headers names them. 2xx shows the answer; 401 and 403 are given to the client; anything else is 503. A first request is not asked about: the service does that.

REFUSALS (RFC 9457)

A refusal is a problem document with a "code" that is stable: one of package semelhttp, whose documentation lists them, or

    408  body_timeout            the client fell silent in its body: with a key (then
                                 --body-timeout says when) nothing was sent
    503  upstream_unreachable    nothing was sent to the service
    502  upstream_lost           it was sent, and no answer came: doubt
    504  upstream_timeout        it was sent, and no answer came in time: doubt
    503  authorizer_unavailable  --authorize-url could not be asked, or too many large answers wait
    429  tenant_limit            too much at a time for one tenant; see LIMITS
    503  overloaded              too much at a time in all
    503  replays_full            it is done; too many large answers wait for their clients
    403  peer_refused            the peer is none of --trusted-gateways
    400  bad_target, bad_path, protected_header, ambiguous_header, upgrade_refused,
         key_reserved
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
        no-store: true            # the status is kept, and nothing else
      - match: POST /orders
        key-from: [order.id]      # for clients that send no key
        require-key: true         # and if there is no order.id, it is answered 400
        upstream-timeout: 2m
      - match: /uploads/
        pass-through: true

A rule can set on-doubt, methods, require-key, key-from, wait, retention, no-store, keep-5xx, final-statuses, no-effect-statuses, upstream-timeout, pass-through and operation, whatever flags say. Rules can change without harm, but for a new "operation": under another name, kept keys are not found. An option that has no effect in its rule, such as require-key with pass-through or for a method that is not protected, is refused at the start. With rules, paths with empty or dot segments are refused (400). Methods count in any spelling. If a path matches a stricter rule once its capitals, a slash at its end, ;parameters, escaped slashes or a suffix such as .json are ignored, that rule applies. A rule that matches only in this way applies only if it is stricter than the rule that matches exactly: as in net/http, /orders does not match /orders/. If it has an operation of its own, one key then takes effect under each spelling. A service that takes both needs a rule for each, with one operation.

ADMIN (--admin-listen)

    /healthz  200 while the process lives
    /readyz   200 while it can serve: the store answers, tokens can be verified,
              temporary files can be made, and no stop has begun; else 503
    /metrics  counts of what happened, by kind, operation and rule
    /observed what an observing proxy would have done, as text; /observed?json

Certificates, key sets and secrets are read again when their files change; one that cannot be used is logged, and the last one stays in use.

SIGTERM, SIGINT and SIGHUP turn /readyz to 503, close the listener, and wait --drain for requests in flight. Near its end, requests that are left are given up: their callers get 502, and each key is released or parked, as its policy says. Connections that have switched to another protocol, such as WebSockets, are not waited for: they end with the process. Exit codes: 0 stopped cleanly, 1 failed, 2 wrong options.`
}
