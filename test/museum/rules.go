package museum

// rules are what an exhibit can break: the numbered rules of the protocol, and
// what is promised beside them.
var rules = map[string]string{
	"rule 1":     "one pure function judges a record; nothing else does",
	"rule 2":     "a claim is one atomic step, and an owner wins its own claim",
	"rule 3":     "a change of what one does not own compares all that was seen",
	"rule 4":     "an owner's change shows owner, fence and state; one settlement a lease",
	"rule 5":     "the fence grows with each change of hands, also across a sweep",
	"rule 6":     "the store's clock decides; the owner stops in time by its own",
	"rule 7":     "leases are renewed; retention counts from completion; a sweep re-checks",
	"rule 8":     "what is terminal never changes, and a replay equals the first answer",
	"rule 9":     "completion does not end with the caller; not known is not failed",
	"rule 10":    "what is too large to keep leaves a tombstone, and never runs again",
	"rule 11":    "an error of the store, or a record without sense, is not absence",
	"rule 12":    "the payload is compared in every state, by a keyed hash of its parts",
	"rule 13":    "an attempt counts when a handler starts; who left gives it back",
	"rule 14":    "who waits is bounded, told the truth, and judged anew",
	"rule 15":    "a derived key hangs on nothing that changes between attempts",
	"rule 16":    "a token that is delivered twice runs once",
	"rule 17":    "a reconciler holds a lease, and its no is final or not given",
	"policy":     "the stricter policy of record and call wins, and doubt obeys it",
	"doubt":      "only NoEffect and Final say that there is none",
	"scope":      "equal keys of two scopes never meet",
	"atomic":     "record and writes stand or fall together",
	"durable":    "what is acknowledged is on disk",
	"lanes":      "requests that share a round trip do not share their fate",
	"http":       "what a record may keep, show and ask of HTTP",
	"ack":        "a message is acked when its outcome, or its copy, is kept, and not before",
	"sent twice": "no client sends a request twice by itself",
}
