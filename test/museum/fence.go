package museum

// Rule 5: the fence grows with each change of owner, also after a sweep.
var fences = []Mutant{
	{
		Name: "a take-over keeps the fence", Rule: "rule 5", Parent: "Redlock: it has no fencing token",
		Dir: seam, Func: "(*Proposal).apply", Package: mem, Run: "TestConformance$/fence",
		Old: "max(floor+1,", New: "max(floor,",
	},
	{
		Name: "the fence is a counter without the clock", Rule: "rule 5",
		Dir: seam, Func: "(*Proposal).apply", Package: seam, Run: "TestFence_FloorOrClock_ExceedsBoth",
		Old: "r.Fence = max(floor+1, uint64(max(0, Micros(now))))", New: "r.Fence = floor + 1",
	},
	{
		Name: "the fence is the clock alone", Rule: "rule 5",
		Dir: seam, Func: "(*Proposal).apply", Package: mem, Run: "TestConformance$/fence",
		Old: "r.Fence = max(floor+1, uint64(max(0, Micros(now))))", New: "r.Fence = uint64(max(0, Micros(now)))",
	},
	{
		Name: "a sweep forgets the highest fence", Rule: "rule 5",
		Dir: mem, Func: "(*Store).Sweep", Package: mem, Run: "TestConformance$/fence",
		Old: "s.sweptFence = max(s.sweptFence, r.Fence)", New: "_ = r.Fence",
	},
	{
		Name: "a key that begins anew begins with a low fence", Rule: "rule 5",
		Dir: seam, Func: "(*Proposal).Replace", Package: mem, Run: "TestConformance$/fence",
		Old: "p.apply(&r, now, old.Fence)",
		New: `
			if p.Restart {
				old = &Record{}
			}
			p.apply(&r, now, old.Fence)`,
	},
	{
		Name: "parking keeps the fence", Rule: "rule 4",
		Dir: seam, Func: "(*Proposal).Replace", Package: mem, Run: "TestConformance$",
		Old: "p.apply(&r, now, old.Fence)",
		New: `
			p.apply(&r, now, old.Fence)
			if p.State == Unknown {
				r.Fence = old.Fence
			}`,
	},
	{
		Name: "an operator's verdict keeps the fence", Rule: "rule 4",
		Dir: seam, Func: "(*Proposal).Replace", Package: core, Run: "TestResolve_RecordChanged_IsRefused",
		Old: "p.apply(&r, now, old.Fence)",
		New: `
			p.apply(&r, now, old.Fence)
			if old.State == Unknown {
				r.Fence = old.Fence
			}`,
	},
}
