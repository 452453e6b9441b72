package museum

// Rule 16: a token that is delivered twice runs once.
var reservations = []Mutant{
	{
		Name: "a reservation of a call that is done and not kept reports a result", Rule: "rule 10",
		Dir: core, Func: "(*pendingCall).answer", Package: core, Run: "TestReserve_DoneNotKept_IsErrNotKept",
		Old: "if r.Outcome.Gone {", New: "if r.Outcome.Gone && !c.guard.options.Rerun {",
	},
	{
		Name: "a token runs while its call runs", Rule: "rule 16",
		Dir: seam, Func: "byState", Package: core, Run: "TestRedeem_TokenDeliveredOften_RunsOnce|TestRedeem_AttemptsFailedOrCrashed_TokenHolds",
		Old: "if r.Lapsed(now) {", New: "if r.Lapsed(now) || !c.Token.IsZero() {",
	},
	{
		Name: "a token of an earlier reservation runs", Rule: "rule 16",
		Dir: seam, Func: "Decide", Package: core, Run: "TestRedeem_KeyBeganAgain_IsExpired",
		Old: "if hasToken && !r.Created.Equal(c.Token) {", New: "if false {",
	},
	{
		Name: "a token of an expired outcome runs", Rule: "rule 16",
		Dir: seam, Func: "Decide", Package: core, Run: "TestRedeem_KeyBeganAgain_IsExpired",
		Old: "if hasToken {", New: "if false {",
	},
	{
		Name: "a token of a swept key runs", Rule: "rule 16",
		Dir: core, Func: "(*pendingCall).claim", Package: core, Run: "TestRedeem_KeyBeganAgain_IsExpired|FuzzRedeem",
		Old: "if c.isRedeemed() {", New: "if false {",
	},
	{
		Name: "a call without the token runs a reserved call", Rule: "rule 16",
		Dir: seam, Func: "byState", Package: core, Run: "TestRedeem_TokenDeliveredOften_RunsOnce",
		Old: "if !c.Token.IsZero() || r.Lapsed(now) {", New: "if true {",
	},
	{
		Name: "a reservation never expires", Rule: "rule 16", Parent: "vendo#1312",
		Dir: seam, Func: "byState", Package: core, Run: "TestReserve_NotRedeemed_Expires",
		Old: "if !c.Token.IsZero() || r.Lapsed(now) {", New: "if !c.Token.IsZero() {",
	},
	{
		Name: "a token changes with each attempt", Rule: "rule 16",
		Dir: core, Func: "token", Package: core, Run: "TestRedeem_AttemptsFailedOrCrashed_TokenHolds",
		Old: "uint64(store.Micros(r.Created))", New: "r.Fence",
	},
	{
		Name: "each duplicate's reservation is fresh", Rule: "rule 16",
		Dir: core, Func: "(*Guard).Reserve", Package: core, Run: "TestRedeem_TokenDeliveredOften_RunsOnce",
		Old: "return Ticket{Token: token(&f.Record)}, nil", New: "return Ticket{Token: token(&f.Record), Fresh: true}, nil",
	},
	{
		Name: "in a transaction a token runs a call that is not reserved", Rule: "rule 16",
		Dir: core, Func: "(*txCall).claimInTx", Package: core, Run: "TestRunIn_TokenNotReserved_IsExpired",
		Old: "if f.Won && t.isRedeemed() {", New: "if false {",
	},
	{
		Name: "a damaged token is accepted", Rule: "rule 16",
		Dir: core, Func: "parseToken", Package: core, Run: "TestRedeem_TokenDamaged_IsRefused",
		Old: "if r.Len() > 0 {", New: "if false {",
	},
	{
		Name: "a reservation ends with the lease", Rule: "rule 16",
		Dir: core, Func: "(*Guard).Reserve", Package: core, Run: "TestReserve_LeaseOver_HoldsAndIsNoAttempt",
		Old: "store.Started, 0, g.options.Reservation", New: "store.Started, 0, g.options.Lease",
	},
}
