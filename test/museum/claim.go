package museum

// Rule 2: a claim is one atomic step, and "the owner is me" is a win.
var claims = []Mutant{
	{
		Name: "a claim checks first and sets later", Rule: "rule 2", Parent: "M3: idempot-js#182",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/claim",
		Old: "\tr, exists := s.records[p.Key]\n\tif !exists {\n",
		New: "\tr, exists := s.records[p.Key]\n\ts.mu.Unlock()\n\ttime.Sleep(time.Millisecond)\n\ts.mu.Lock()\n\tif !exists {\n",
	},
	{
		Name: "an own claim is read as a conflict", Rule: "rule 2", Parent: "M10: go-redis#2985",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/claim",
		Old: "\tif !exists {\n\t\tr = s.put(p.Insert(",
		New: "\tif exists {\n\t\tp.Owner = store.Owner{}\n\t} else {\n\t\tr = s.put(p.Insert(",
	},
	{
		Name: "an own claim is lost by its caller", Rule: "rule 2", Parent: "M10: aws-sdk-java#2667",
		File: "store/memstore/memstore.go", Package: core, Run: "TestACallNeverLosesToItsOwnLostReply",
		Old: "\tif !exists {\n\t\tr = s.put(p.Insert(",
		New: "\tif exists {\n\t\tp.Owner = store.Owner{}\n\t} else {\n\t\tr = s.put(p.Insert(",
	},
	{
		Name: "a claim that is sent again has another owner", Rule: "rule 2",
		File: "visit.go", Package: core, Run: "TestACallNeverLosesToItsOwnLostReply",
		Old: "\t\ta.found, err = send(ctx, func() (store.Found, error) { return v.g.st.Claim(ctx, p) })\n",
		New: "\t\tp.Owner = newOwner()\n\t\ta.found, err = send(ctx, func() (store.Found, error) { return v.g.st.Claim(ctx, p) })\n",
	},
	{
		Name: "an own claim that has moved on is won again", Rule: "rule 2",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/claim",
		Old: "r.Owner == p.Owner && r.State == p.State", New: "r.Owner == p.Owner",
	},
	{
		Name: "nobody's claim is everybody's", Rule: "rule 2",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/claim",
		Old: "p.Owner != store.Owner{} && r.Owner == p.Owner", New: "r.Owner == p.Owner",
	},
	{
		Name: "the owner is the process and not the claim", Rule: "rule 2",
		File: "visit.go", Package: core, Run: "TestALapsedClaim|TestAnotherPayload|TestAZombie|TestADuplicate",
		Old: "PutUint64(o[:8], rand.Uint64())\n\tbinary.LittleEndian.PutUint64(o[8:], rand.Uint64())", New: "PutUint64(o[:8], 1+0*rand.Uint64())",
	},
	{
		Name: "a claim has no deadline", Rule: "rule 7", Parent: "M4: powertools-python#8386",
		File: "store/change.go", Package: mem, Run: "TestConforms$/(renew|expiry|histories)",
		Old: "\t\tr.Until = Time(Micros(now.Add(wait)))\n\tcase Released:", New: "\tcase Released:",
	},
}
