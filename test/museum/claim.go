package museum

// Rule 2: a claim is one atomic step, and an owner wins its own claim.
var claims = []Mutant{
	{
		Name: "a claim checks first and sets later", Rule: "rule 2", Parent: "M3: idempot-js#182",
		Dir: mem, Func: "(*Store).Claim", Package: mem, Run: "TestConformance$/claim",
		Old: `
			r, exists := s.records[p.Key]
			if !exists {`,
		New: `
			r, exists := s.records[p.Key]
			s.mu.Unlock()
			time.Sleep(time.Millisecond)
			s.mu.Lock()
			if !exists {`,
	},
	{
		Name: "an own claim is read as a conflict", Rule: "rule 2", Parent: "M10: go-redis#2985",
		Dir: mem, Func: "(*Store).Claim", Package: mem, Run: "TestConformance$/claim",
		Old: `
			if !exists {
				r = s.put(p.Insert(`,
		New: `
			if exists {
				p.Owner = store.Owner{}
			} else {
				r = s.put(p.Insert(`,
	},
	{
		Name: "an own claim is lost by its caller", Rule: "rule 2", Parent: "M10: aws-sdk-java#2667",
		Dir: mem, Func: "(*Store).Claim", Package: core, Run: "TestClaim_ReplyLost_IsWon",
		Old: `
			if !exists {
				r = s.put(p.Insert(`,
		New: `
			if exists {
				p.Owner = store.Owner{}
			} else {
				r = s.put(p.Insert(`,
	},
	{
		Name: "a claim that is sent again has another owner", Rule: "rule 2",
		Dir: core, Func: "(*pendingCall).claim", Package: core, Run: "TestClaim_ReplyLost_IsWon",
		Old: "f, err := c.guard.store.Claim(ctx, p)", New: "p.Owner = protocol.NewOwner(); f, err := c.guard.store.Claim(ctx, p)",
	},
	{
		Name: "an own claim that has moved on is won again", Rule: "rule 2",
		Dir: seam, Func: "(*Proposal).Found", Package: mem, Run: "TestConformance$/claim",
		Old: "r.Owner == p.Owner && r.State == p.State", New: "r.Owner == p.Owner",
	},
	{
		Name: "nobody's claim is everybody's", Rule: "rule 2",
		Dir: seam, Func: "(*Proposal).Found", Package: mem, Run: "TestConformance$/claim",
		Old: "p.Owner != Owner{} && r.Owner == p.Owner", New: "r.Owner == p.Owner",
	},
	{
		Name: "all claims of a process have one owner", Rule: "rule 2",
		Dir: "internal/protocol", Func: "NewOwner", Package: core, Run: "TestTakeOver_OldOwnerSettles_IsRefused|TestClaim_ReplyLost|TestRun_ThousandCallsWithoutWait_OneRuns",
		Old: "binary.LittleEndian.PutUint64(o[:8], rand.Uint64()) binary.LittleEndian.PutUint64(o[8:], rand.Uint64())",
		New: "binary.LittleEndian.PutUint64(o[:8], 1+0*rand.Uint64())",
	},
	{
		Name: "a claim has no deadline", Rule: "rule 7", Parent: "M4: powertools-python#8386",
		Dir: seam, Func: "(*Record).settle", Package: mem, Run: "TestConformance$/(renew|expiry|histories)",
		Old: `
				r.Until = Time(Micros(now.Add(wait)))
			case Released:`,
		New: "case Released:",
	},
}
