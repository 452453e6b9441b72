package museum

// Rule 3: a change of a row that one does not own compares all that was seen.
var swaps = []Mutant{
	unseen("the state", "State: r.State, Owner", "Owner"),
	unseen("the owner", "Owner: r.Owner, Fence: r.Fence, Until", "Fence: r.Fence, Until"),
	unseen("the fence", "Fence: r.Fence, Until", "Until"),
	unseen("the end of the lease", "Until: r.Until, ", ""),
	unseen("the expiry", ", Expires: r.Expires", ""),
	{
		Name: "a swap compares nothing", Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/swap",
		Old: "if r.Seen() == seen {", New: "if true {",
	},
	{
		Name: "a swap looks at the clock", Rule: "rule 3",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/swap",
		Old: "if r.Seen() == seen {", New: "if r.Seen() == seen && !now.Before(r.Until) {",
	},
	{
		Name: "an own swap is read as lost", Rule: "rule 2", Parent: "M10: go-redis#2985",
		File: "store/memstore/memstore.go", Package: core, Run: "TestATakeOverNeverLosesToItsOwnLostReply",
		Old: "\tif r.Seen() == seen {\n", New: "\tif r.Seen() != seen {\n\t\tp.Owner = store.Owner{}\n\t}\n\tif r.Seen() == seen {\n",
	},
	{
		Name: "a swap makes the record that is not there", Rule: "rule 3", Parent: "M18: Powertools",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/swap",
		Old: "\t\treturn store.Found{Now: now}, store.ErrNotFound\n\t}\n\tif r.Seen() == seen {",
		New: "\t\tr = s.put(store.Record{Key: seen.Key})\n\t\tseen = r.Seen()\n\t}\n\tif r.Seen() == seen {",
	},
	{
		Name: "a lost race goes on without the claim", Rule: "rule 3", Parent: "M15: granit-dotnet#1151",
		File: "visit.go", Package: core, Run: "TestALostRaceRunsNothing",
		Old: "if *f, err = v.swap(ctx, r.Seen(), p); err == nil && f.Won && d.Action == store.TakeOver {",
		New: "*f, err = v.swap(ctx, r.Seen(), p)\n\t\t\tf.Won = err == nil\n\t\t\tif err == nil && f.Won && d.Action == store.TakeOver {",
	},
	{
		Name: "a sweep recovers what it has not judged", Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		File: "sweep.go", Package: core, Run: "TestASweepRecoversOnlyWhatItJudged",
		Old: "\tf, err := send(ctx, func() (store.Found, error) { return g.st.Swap(ctx, r.Seen(), p) })\n",
		New: "\tseen, err := g.st.Get(ctx, r.Key)\n\tif err != nil {\n\t\treturn err\n\t}\n" +
			"\tf, err := send(ctx, func() (store.Found, error) { return g.st.Swap(ctx, seen.Record.Seen(), p) })\n",
	},
}

// unseen forgets to compare one field.
func unseen(what, fields, without string) Mutant {
	return Mutant{
		Name: "a swap does not compare " + what, Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		File: "store/record.go", Package: seam, Run: "TestSeenAndLease",
		Old: fields, New: without,
	}
}
