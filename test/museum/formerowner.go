package museum

// A record keeps its last owners, so that an operator sees who had it.
var formerOwners = []Mutant{
	{
		Name: "a takeover forgets the former owner", Rule: "owners",
		Dir: core, Func: "(*pendingCall).nextClaim", Package: core, Run: "TestFormerOwners_EachChangeOfOwner_IsKept",
		Old: "p.FormerOwners = r.FormerOwnersAfter(to)", New: "p.FormerOwners = r.FormerOwners",
	},
	{
		Name: "an operator's change forgets the former owner", Rule: "owners",
		Dir: core, Func: "(*Guard).change", Package: core, Run: "TestFormerOwners_Parked_SaysHowItWasResolved",
		Old: "FormerOwners: r.FormerOwnersAfter(to)", New: "FormerOwners: r.FormerOwners",
	},
	{
		Name: "a sweep forgets the former owner", Rule: "owners",
		Dir: "sweep", Func: "(*sweeper).recover", Package: "sweep", Run: "TestSweep_Recovers_KeepsFormerOwner",
		Old: "p.FormerOwners = r.FormerOwnersAfter(p.State)", New: "",
	},
	{
		Name: "an operator's decision about a saga forgets the former owner", Rule: "owners",
		Dir: flow, Func: "proposalOf", Package: flow, Run: "TestIntervene_ParkedStepInDoubt_GoesOnAsDecided",
		Old: "FormerOwners: r.FormerOwnersAfter(store.Processing)", New: "FormerOwners: r.FormerOwners",
	},
	{
		Name: "the list of former owners has no end", Rule: "owners",
		Dir: seam, Func: "(*Record).FormerOwnersAfter", Package: mem, Run: "TestConformance$/former_owners",
		Old: "r.FormerOwners[max(0, len(r.FormerOwners)-MaxFormerOwners+1):]", New: "r.FormerOwners",
	},
	{
		Name: "the first former owners are kept, not the last", Rule: "owners",
		Dir: seam, Func: "(*Record).FormerOwnersAfter", Package: mem, Run: "TestConformance$/former_owners",
		Old: "r.FormerOwners[max(0, len(r.FormerOwners)-MaxFormerOwners+1):]", New: "r.FormerOwners[:min(len(r.FormerOwners), MaxFormerOwners-1)]",
	},
	{
		Name: "a reservation counts as a former owner", Rule: "owners",
		Dir: seam, Func: "(*Record).FormerOwnersAfter", Package: core, Run: "TestFormerOwners_ReservationRedeemed_HasNone",
		Old: "r.State == Started", New: "!r.State.Valid()",
	},
	{
		Name: "a new life of the key has the former owners of the one before", Rule: "owners",
		Dir: core, Func: "(*pendingCall).nextClaim", Package: core, Run: "TestFormerOwners_EachChangeOfOwner_IsKept",
		Old: "p.Restart = true", New: "p.Restart, p.FormerOwners = true, r.FormerOwnersAfter(to)",
	},
	{
		Name: "SQLite: a replaced row has no former owners", Rule: "owners",
		Dir: lite, Func: "replaceArgs", Package: lite, Run: "TestConformance$/former_owners",
		Old: "store.EncodeFormerOwners(r.FormerOwners)", New: "[]byte(nil)",
	},
	{
		Name: "PostgreSQL: a swap has no former owners", Rule: "owners",
		Dir: postgres, Func: "(*session).swap", Package: postgres, Run: "TestConformance$/former_owners",
		Old: "store.EncodeFormerOwners(p.FormerOwners)", New: "[]byte(nil)",
	},
	{
		Name: "Redis: a record has no former owners", Rule: "owners",
		Dir: fast, Func: "appendRest", Package: fast, Run: "TestConformance$/former_owners",
		Old: "b = append(b, store.EncodeFormerOwners(p.FormerOwners)...)", New: "",
	},
	{
		Name: "DynamoDB: a swap does not write the former owners", Rule: "owners",
		Dir: dynamo, Func: "var claimAttributes", Package: dynamo, Run: "TestConformance$/former_owners",
		Old: "attrRenewal, attrFormer,", New: "attrRenewal,",
	},
}
