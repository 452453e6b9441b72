package museum

// Rule 5: the fence strictly grows, also across a sweep, and with each change
// of hands.
var fences = []Mutant{
	{
		Name: "a take-over keeps the fence", Rule: "rule 5", Parent: "Redlock: it has no fencing token",
		File: "store/change.go", Package: mem, Run: "TestConforms$/fence",
		Old: "max(floor+1, ", New: "max(floor, ",
	},
	{
		Name: "the fence is a counter without the clock", Rule: "rule 5",
		File: "store/change.go", Package: seam, Run: "TestTheFenceIsAbove",
		Old: "r.Fence = max(floor+1, uint64(max(0, Micros(now))))", New: "r.Fence = floor + 1",
	},
	{
		Name: "the fence is the clock alone", Rule: "rule 5",
		File: "store/change.go", Package: mem, Run: "TestConforms$/fence",
		Old: "r.Fence = max(floor+1, uint64(max(0, Micros(now))))", New: "r.Fence = uint64(max(0, Micros(now)))",
	},
	{
		Name: "a sweep forgets the highest fence", Rule: "rule 5",
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms$/fence",
		Old: "s.sweptFence = max(s.sweptFence, r.Fence)", New: "_ = r.Fence",
	},
	{
		Name: "a key that begins anew begins with a low fence", Rule: "rule 5",
		File: "store/change.go", Package: mem, Run: "TestConforms$/fence",
		Old: "\tp.apply(&r, now, old.Fence)\n", New: "\tif p.Restart {\n\t\told = &Record{}\n\t}\n\tp.apply(&r, now, old.Fence)\n",
	},
	{
		Name: "parking keeps the fence", Rule: "rule 4",
		File: "store/change.go", Package: mem, Run: "TestConforms$",
		Old: "\tp.apply(&r, now, old.Fence)\n", New: "\tp.apply(&r, now, old.Fence)\n\tif p.State == Unknown {\n\t\tr.Fence = old.Fence\n\t}\n",
	},
	{
		Name: "an operator's verdict keeps the fence", Rule: "rule 4",
		File: "store/change.go", Package: core, Run: "TestResolveHolds",
		Old: "\tp.apply(&r, now, old.Fence)\n", New: "\tp.apply(&r, now, old.Fence)\n\tif old.State == Unknown {\n\t\tr.Fence = old.Fence\n\t}\n",
	},
}
