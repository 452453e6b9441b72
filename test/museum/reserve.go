package museum

// Rule 16: a token that is delivered twice runs once.
var reservations = []Mutant{
	{
		Name: "a reservation of what is done, and not kept, is told it is there", Rule: "rule 10",
		File: "visit.go", Package: core, Run: "TestAReservationOfWhatIsDone",
		Old: "\t\tif r.Outcome.Gone {\n", New: "\t\tif r.Outcome.Gone && !v.g.opt.Rerun {\n",
	},
	{
		Name: "a token runs while it runs", Rule: "rule 16",
		File: "store/decide.go", Package: core, Run: "TestAReservationRunsOnce|TestATokenSurvives",
		Old: "\t\tif r.Lapsed(now) {\n", New: "\t\tif r.Lapsed(now) || !c.Token.IsZero() {\n",
	},
	{
		Name: "a token of an earlier life runs", Rule: "rule 16",
		File: "store/decide.go", Package: core, Run: "TestATokenOfAKeyThatBeganAnew",
		Old: "if bearer && !r.Created.Equal(c.Token) {", New: "if false {",
	},
	{
		Name: "a token of an outcome that is over runs", Rule: "rule 16",
		File: "store/decide.go", Package: core, Run: "TestATokenOfAKeyThatBeganAnew",
		Old: "\t\tif bearer {\n", New: "\t\tif false {\n",
	},
	{
		Name: "a token of a swept key runs", Rule: "rule 16",
		File: "visit.go", Package: core, Run: "TestATokenOfAKeyThatBeganAnew|FuzzRedeem",
		Old: "\tif !v.call.token.IsZero() {\n\t\ta.found, err = v.look(ctx)\n", New: "\tif false {\n\t\ta.found, err = v.look(ctx)\n",
	},
	{
		Name: "a plain call runs what is reserved", Rule: "rule 16",
		File: "store/decide.go", Package: core, Run: "TestAReservationRunsOnce",
		Old: "if !c.Token.IsZero() || r.Lapsed(now) {", New: "if true {",
	},
	{
		Name: "a reservation never lapses", Rule: "rule 16", Parent: "vendo#1312",
		File: "store/decide.go", Package: core, Run: "TestAReservationThatNobodyRedeems",
		Old: "if !c.Token.IsZero() || r.Lapsed(now) {", New: "if !c.Token.IsZero() {",
	},
	{
		Name: "a token names the attempt", Rule: "rule 16",
		File: "reserve.go", Package: core, Run: "TestATokenSurvives",
		Old: "uint64(store.Micros(r.Created))", New: "r.Fence",
	},
	{
		Name: "each duplicate's reservation is fresh", Rule: "rule 16",
		File: "reserve.go", Package: core, Run: "TestAReservationRunsOnce",
		Old: "return Ticket{Token: token(&f.Record)}, nil", New: "return Ticket{Token: token(&f.Record), Fresh: true}, nil",
	},
	{
		Name: "a token runs in a transaction what was not reserved", Rule: "rule 16",
		File: "atomic.go", Package: core, Run: "TestTokenInATransaction",
		Old: "if f.Won && !t.call.token.IsZero() {", New: "if false {",
	},
	{
		Name: "a damaged token is taken", Rule: "rule 16",
		File: "reserve.go", Package: core, Run: "TestADamagedToken",
		Old: "if r.Len() > 0 {", New: "if false {",
	},
	{
		Name: "a reservation ends with the lease", Rule: "rule 16",
		File: "reserve.go", Package: core, Run: "TestAReservationOutlasts",
		Old: "store.Started, 0, g.opt.Reservation", New: "store.Started, 0, g.opt.Lease",
	},
}
