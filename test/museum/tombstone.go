package museum

// Rule 10: a result that is too large to keep leaves a tombstone, and the handler does
// not run again.
var tombstones = []Mutant{
	{
		Name: "a result that is too large is not recorded", Rule: "rule 10", Parent: "M11: fiber#4287, granit-dotnet#1151",
		Dir: core, Func: "(*Guard).completion", Package: core, Run: "TestOutcome_TooLarge_LeavesTombstone",
		Old: "return store.Settlement{State: store.Completed, Attempt: 0, Outcome: g.limit(o), Keep: g.options.Retention}",
		New: `
			s := store.Settlement{State: store.Completed, Attempt: 0, Outcome: g.limit(o), Keep: g.options.Retention}
			if s.Outcome.Gone {
				s.State = store.Released
			}
			return s`,
	},
	{
		Name: "a result that is too large is replayed empty", Rule: "rule 10", Parent: "M11: fiber#4287",
		Dir: core, Func: "(*Guard).limit", Package: core, Run: "TestOutcome_TooLarge_LeavesTombstone",
		Old: "o.Body, o.Gone = nil, true", New: "o.Body = nil",
	},
	{
		Name: "a result has no limit", Rule: "rule 10",
		Dir: core, Func: "(*Guard).limit", Package: core, Run: "TestOutcome_TooLarge_LeavesTombstone",
		Old: "if size+len(o.Body) > g.options.MaxOutcome {", New: "if false {",
	},
	{
		Name: "headers have no limit", Rule: "rule 10",
		Dir: core, Func: "(*Guard).limit", Package: core, Run: "TestOutcome_HeadersTooLarge_LeaveTombstone",
		Old: "size += len(h.Name) + len(h.Value)", New: "size += 0 * len(h.Name)",
	},
	{
		Name: "a tombstone is replayed as a result", Rule: "rule 10",
		Dir: core, Func: "(*pendingCall).answer", Package: core, Run: "TestOutcome_TooLarge_LeavesTombstone",
		Old: "if r.Outcome.Gone {", New: "if false {",
	},
	{
		Name: "an outcome that is too large for the store is not recorded", Rule: "rule 10", Parent: "M11: DynamoDB, 400 KB an item",
		Dir: core, Func: "(*Guard).sendUntil", Package: core, Run: "TestOutcome_BodyTooLargeForStore_LeavesTombstone",
		Old: "errors.Is(err, store.ErrChanged):", New: "errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrTooLarge):",
	},
	{
		Name: "a result that the store of a transaction cannot keep is not recorded", Rule: "rule 10",
		Dir: core, Func: "(*txCall).settle", Package: core, Run: "TestRunIn_OutcomeTooLargeForStore_LeavesTombstone",
		Old: "if errors.Is(settleErr, store.ErrTooLarge) {", New: "if false {",
	},
	{
		Name: "a failure that is too large is replayed empty", Rule: "rule 10",
		Dir: core, Func: "(*Guard).failed", Package: core, Run: "TestOutcome_FailureTooLarge_IsFailureNotKept",
		Old: "Outcome: g.limit(o)", New: "Outcome: store.Outcome{Code: len(g.limit(o).Body)}",
	},
	{
		Name: "a result that cannot be encoded runs again", Rule: "rule 10",
		Dir: core, Func: "Do", Package: core, Run: "TestDo_ResultNotEncodable_IsDoneAndNotKept",
		Old: "return store.Outcome{Gone: true}, nil", New: "return store.Outcome{}, err",
	},
}
