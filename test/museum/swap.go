package museum

// Rule 3: a change by a process that is not the owner compares every field that it has
// read.
var swaps = []Mutant{
	unseen("the state", "State: r.State, Owner", "Owner"),
	unseen("the owner", "Owner: r.Owner, Fence: r.Fence, Until", "Fence: r.Fence, Until"),
	unseen("the fence", "Fence: r.Fence, Until", "Until"),
	unseen("the end of the lease", "Until: r.Until, ", ""),
	unseen("the expiry", ", Expires: r.Expires", ""),
	{
		Name: "a swap compares nothing", Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		Dir: mem, Func: "(*Store).Swap", Package: mem, Run: "TestConformance$/swap",
		Old: "if r.Seen() == seen {", New: "if true {",
	},
	{
		Name: "a swap looks at the clock", Rule: "rule 3",
		Dir: mem, Func: "(*Store).Swap", Package: mem, Run: "TestConformance$/swap",
		Old: "if r.Seen() == seen {", New: "if r.Seen() == seen && !now.Before(r.Until) {",
	},
	{
		Name: "a process loses its own swap", Rule: "rule 2", Parent: "M10: go-redis#2985",
		Dir: mem, Func: "(*Store).Swap", Package: core, Run: "TestTakeOver_ReplyLost_IsWon",
		Old: "if r.Seen() == seen {",
		New: `
			if r.Seen() != seen {
				p.Owner = store.Owner{}
			}
			if r.Seen() == seen {`,
	},
	{
		Name: "a swap makes the record that is not there", Rule: "rule 3", Parent: "M18: Powertools",
		Dir: mem, Func: "(*Store).Swap", Package: mem, Run: "TestConformance$/swap",
		Old: `
				return store.Found{Now: now}, store.ErrNotFound
			}
			if r.Seen() == seen {`,
		New: `
				r = s.put(store.Record{Key: seen.Key}, nil)
				seen = r.Seen()
			}
			if r.Seen() == seen {`,
	},
	{
		Name: "a caller whose swap lost runs the handler", Rule: "rule 3", Parent: "M15: granit-dotnet#1151",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestTakeOver_SwapLost_RunsNothing",
		Old: "if *f, err = c.swap(ctx, r.Seen(), p); err == nil && f.Won && d.Action == store.TakeOver {",
		New: `
			*f, err = c.swap(ctx, r.Seen(), p)
			f.Won = err == nil
			if err == nil && f.Won && d.Action == store.TakeOver {`,
	},
	{
		Name: "a sweep changes a record that has changed since it judged it", Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		Dir: "sweep", Func: "(*sweeper).recover", Package: "sweep", Run: "TestOnce_RenewedMeanwhile_IsLeftAlone",
		Old: "return s.store.Swap(limited, r.Seen(), p)",
		New: `
			seen, err := s.store.Get(ctx, r.Key)
			if err != nil {
				return f, err
			}
			return s.store.Swap(limited, seen.Record.Seen(), p)`,
	},
}

// unseen forgets to compare one field.
func unseen(what, fields, without string) Mutant {
	return Mutant{
		Name: "a swap does not compare " + what, Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		Dir: seam, Func: "(*Record).Seen", Package: seam, Run: "TestRecord_SeenAndLease_HaveItsFields",
		Old: fields, New: without,
	}
}
