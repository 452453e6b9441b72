package museum

// Each act of an operator is written down before it happens, and refused if that fails.
var audits = []Mutant{
	{
		Name: "audit: an act happens although it could not be written down", Rule: "audit",
		Dir: "cmd/semel/internal/audit", Func: "(*Trail).Do", Package: "cmd/semel/internal/cli", Run: "TestAudit_NotWritable_NothingIsDone",
		Old: `
			if err != nil {
				return acts.NotDone, err
			}`,
		New: `
			if err != nil {
				return acts.NotDone, fn()
			}`,
	},
	{
		Name: "audit: an act of the console happens although it was refused", Rule: "audit",
		Dir: consoleDir, Func: "(*Console).audited", Package: consoleDir, Run: "TestAudit_BeforeAndAfterEachChange",
		Old: `
			if err == nil {
				err = fn()`,
		New: `
			if fn != nil {
				err = fn()`,
	},
	{
		Name: "audit: an act has another name in the console than in the commands", Rule: "audit",
		Dir: "cmd/semel/internal/cli", Func: "consoleAct", Package: "cmd/semel/internal/cli", Run: "TestAudit_ActOfConsole_HasTheWordsOfTheCommand",
		Old: "Act: a.Verb,", New: `Act: "console: " + a.Verb,`,
	},
	{
		Name: "audit: the log has another result than the trail", Rule: "audit",
		Dir: "cmd/semel/internal/cli", Func: "(*env).act", Package: "cmd/semel/internal/cli", Run: "TestAudit_EachAct_HasIntentAndResult",
		Old: "return result, errors.Join(err, trail.Close())", New: `return "accepted", errors.Join(err, trail.Close())`,
	},
	{
		Name: "audit: the key is in the clear", Rule: "audit",
		Dir: "cmd/semel/internal/audit", Func: "RecordOf", Package: "cmd/semel/internal/cli", Run: "TestAudit_EachAct_HasIntentAndResult",
		Old: "r.KeyHash = k.Short()", New: "r.KeyHash = k.Value",
	},
	{
		Name: "audit: the tenant is in the clear", Rule: "audit",
		Dir: "cmd/semel/internal/audit", Func: "RecordOf", Package: "cmd/semel/internal/cli", Run: "TestAudit_EachAct_HasIntentAndResult",
		Old: "r.TenantSHA256 = hex.EncodeToString(sum[:])", New: "_, r.TenantSHA256 = sum, k.Tenant",
	},
	{
		Name: "audit: an erasure that found nothing looks done", Rule: "audit",
		Dir: "cmd/semel/internal/audit", Func: "(*Counts).Nothing", Package: "cmd/semel/internal/cli", Run: "TestAudit_Erasure_ResultHasCounts",
		Old: "*c == Counts{}", New: "c.Erased < 0",
	},
	{
		Name: "audit: an erasure of hashed and other records names the hash alone", Rule: "audit",
		Dir: "cmd/semel/internal/cli", Func: "(*erasedCounts).forTrail", Package: "cmd/semel/internal/cli", Run: "TestErase_BothForms_LogAndTrailNameEach",
		Old: "counts.OtherPart = p", New: "counts.OtherPart = nil",
	},
	{
		Name: "audit: an erasure of hashed records has a hash that can be guessed", Rule: "audit",
		Dir: "cmd/semel/internal/cli", Func: "(*erasedCounts).forTrail", Package: "cmd/semel/internal/cli", Run: "TestErase_BothForms_LogAndTrailNameEach",
		Old: "p.Erased+p.Left > 0", New: "p.Erased >= 0",
	},
	{
		Name: "audit: the text of an error has the tenant in the clear", Rule: "audit",
		Dir: "internal/acts", Func: "Text", Package: "cmd/semel/internal/cli", Run: "TestAudit_EachAct_HasIntentAndResult",
		Old: "return n.WithoutNames()", New: "return n.Error()",
	},
	{
		Name: "audit: an entry after a full disk is lost with half a line", Rule: "audit",
		Dir: "cmd/semel/internal/audit", Func: "(*Trail).write", Package: "cmd/semel/internal/audit", Run: "TestDo_FileEndsWithPartOfLine",
		Old: "t.endsInLine()", New: "false",
	},
	{
		Name: "audit: acts are written to a file that was rotated away", Rule: "audit",
		Dir: "cmd/semel/internal/audit", Func: "(*Trail).follow", Package: "cmd/semel/internal/audit", Run: "TestBegin_FileIsRotatedOrRemoved",
		Old: "err == nil && lost == nil && os.SameFile(opened, at)", New: "err != nil || lost != nil || os.SameFile(opened, at) || at.Size() == 0",
	},
}
