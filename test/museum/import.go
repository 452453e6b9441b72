package museum

// Keys of other programs count, and overwrite no call.
var imports = []Mutant{
	{
		Name: "an imported key refuses its duplicates", Rule: "rule 12",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_AnyPayload_NotCompared",
		Old: "!hasToken && r.Fingerprint.Alg != AnyPayload", New: "!hasToken",
	},
	{
		Name: "an import overwrites a claim", Rule: "moved",
		Dir: "cmd/semel/internal/importer", Func: "(*Defaults).record", Package: "cmd/semel/internal/importer", Run: "TestRecord_WholeRow_IsCompleted",
		Old: "r.State, r.Fence, r.Owner, r.Holder, r.Format = store.Completed, 1,", New: "r.State, r.Fence, r.Owner, r.Holder, r.Format = store.Completed, uint64(store.Micros(now)),",
	},
	{
		Name: "an import takes a number that is no time for a key that has expired", Rule: "moved",
		Dir: "cmd/semel/internal/importer", Func: "timeOf", Package: "cmd/semel/internal/importer", Run: "TestRecord_TimeOutsideBounds_IsBadRow",
		Old: "case t.Before(earliest) || !t.Before(tooLate):", New: "case !t.Before(tooLate):",
	},
	{
		Name: "an import takes a key that no call can have", Rule: "moved",
		Dir: "cmd/semel/internal/importer", Func: "checkKey", Package: "cmd/semel/internal/importer", Run: "TestRecord_BadRow_NamesFieldAndReason",
		Old: "strings.TrimSpace(f.value) != f.value", New: "f.value == \"\" && f.name == \"key\"",
	},
}
