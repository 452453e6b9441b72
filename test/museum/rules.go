package museum

// rules are the rules that a mutant can break: the numbered rules of the
// protocol, and the promises beside them.
var rules = map[string]string{
	"rule 1":     "one pure function judges a record; no other code does",
	"rule 2":     "a claim is one atomic step, and an owner wins its own claim",
	"rule 3":     "a change of a record by another than its owner compares every field that was read",
	"rule 4":     "an owner's change names owner, fence and state; a lease is settled once",
	"rule 5":     "the fencing token grows with each change of owner, also after a sweep",
	"rule 6":     "the store's clock decides; the owner stops in time by its own clock",
	"rule 7":     "leases are renewed; retention counts from completion; a sweep checks again",
	"rule 8":     "a terminal record never changes, and a replay equals the first answer",
	"rule 9":     "completion does not end with the caller; an unknown outcome is not a failure",
	"rule 10":    "an outcome that is too large to keep leaves a tombstone, and never runs again",
	"rule 11":    "an error of the store, or a corrupt record, does not count as absence",
	"rule 12":    "the payload is compared in every state, by a keyed hash of its parts",
	"rule 13":    "an attempt counts when a handler starts; a caller that leaves before gives it back",
	"rule 14":    "the number and the time of waiters are bounded, and each gets the true answer",
	"rule 15":    "a derived key depends on nothing that changes between attempts",
	"rule 16":    "a token that is delivered twice runs once",
	"rule 17":    "a reconciler holds a lease, and its no is final or is not given",
	"policy":     "the stricter policy of record and call applies, also in doubt",
	"doubt":      "only NoEffect and Final say that there is no effect",
	"scope":      "equal keys of two scopes never meet",
	"atomic":     "the record and the handler's writes commit together or not at all",
	"durable":    "an acknowledged change is on disk",
	"lanes":      "a request does not fail because another in the same round trip does",
	"http":       "the parts of a request and an answer that a record may keep, show and require",
	"ack":        "a message is acknowledged after its outcome, or its copy, is stored, and not before",
	"sent twice": "no client sends a request twice by itself",
}
