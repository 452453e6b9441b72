package museum

const consoleDir = "console"

// The console must not decide what nobody may decide, nor about another state of a record
// than the one that was seen, nor show what is hidden. It must not pass over what is missing or
// out of date.
var consoles = []Mutant{
	{
		Name: "console: a store that hangs keeps an open page as it was", Rule: "console",
		Dir: consoleDir, Func: "page.read", Package: consoleDir, Run: "TestRecord_StoreHangs",
		Old: "readTime)", New: "time.Hour)",
	},
	{
		Name: "console: an outbox that hangs keeps the calls in doubt away", Rule: "console",
		Dir: consoleDir, Func: "(*Console).overview", Package: consoleDir, Run: "TestOverview_OutboxHangs",
		Old: "c.options.Outbox.Stats(within)", New: "c.options.Outbox.Stats(ctx)",
	},
	{
		Name: "console: a form of a page that is out of date is carried out", Rule: "console",
		Dir: consoleDir, Func: "(*Console).seen", Package: consoleDir, Run: "TestChange_OldFence",
		Old: `strconv.FormatUint(f.Record.Fence, 10) != form.Get("fence")`, New: `form.Get("fence") == ""`,
	},
	{
		Name: "console: somebody without a name may decide", Rule: "console",
		Dir: consoleDir, Func: "(*Console).change", Package: consoleDir, Run: "TestChange_Refused",
		Old: `operator != ""`, New: `p.act != nil`,
	},
	{
		Name: "console: another site can send its forms", Rule: "console",
		Dir: consoleDir, Func: "New", Package: consoleDir, Run: "TestChange_FromAnotherSite",
		Old: "c.handler = protect(mux)", New: "c.handler = mux",
	},
	{
		Name: "console: an open overview reads all calls in doubt again and again", Rule: "limits",
		Dir: consoleDir, Func: "(*Console).inDoubt", Package: consoleDir, Run: "TestOverview_ManyCallsInDoubt",
		Old: ", Limit: mostRead", New: "",
	},
	{
		Name: "console: the overview does not say that it has not read all", Rule: "console",
		Dir: consoleDir, Func: "(*Console).read", Package: consoleDir, Run: "TestOverview_ManyCallsInDoubt",
		Old: "case most > 0 && seen > most: l.Late = true", New: "case most > 0 && seen > most:",
	},
	{
		Name: "console: a search reads all records", Rule: "limits",
		Dir: consoleDir, Func: "(*Console).records", Package: consoleDir, Run: "TestRecords_SearchAndExpired",
		Old: "f.Keys = []string{key, hashed.Value}", New: "_ = hashed",
	},
	{
		Name: "console: a list that is not whole has a count as if it were", Rule: "console",
		Dir: consoleDir, Func: "list.Count", Package: consoleDir, Run: "TestOverview_ManyCallsInDoubt",
		Old: "l.More || !l.Whole()", New: "l.More",
	},
	{
		Name: "console: hidden bodies are shown", Rule: "console",
		Dir: consoleDir, Func: "(*Console).answerOf", Package: consoleDir, Run: "TestRecord_Bodies",
		Old: "!c.options.ShowBodies", New: "c.options.Retention < 0",
	},
	{
		Name: "console: a cookie is shown", Rule: "console",
		Dir: consoleDir, Func: "(*Console).answerOf", Package: consoleDir, Run: "TestRecord_Bodies",
		Old: `!strings.EqualFold(h.Name, "Set-Cookie")`, New: `h.Name != ""`,
	},
	{
		Name: "console: the record does not say who has decided", Rule: "console",
		Dir: consoleDir, Func: "(*Console).resolve", Package: consoleDir, Run: "TestResolve_EachVerdict",
		Old: `Holder: history.ResolvedBy + who`, New: `Holder: history.ResolvedBy`,
	},
	{
		Name: "console: a verdict is shown as the end of the attempt", Rule: "console",
		Dir: consoleDir, Func: "(*Console).lastEvent", Package: consoleDir, Run: "TestRecord_Resolved",
		Old: `case present.Decision != "":`, New: `case present == nil:`,
	},
	{
		Name: "console: an answer that no caller can read is accepted", Rule: "console",
		Dir: consoleDir, Func: "answerIn", Package: consoleDir, Run: "TestResolve_CallOfDo",
		Old: "!json.Valid([]byte(body))", New: `!json.Valid([]byte("0"))`,
	},
	{
		Name: "console: an open page never hears of a change", Rule: "console",
		Dir: consoleDir, Func: "(*Console).live", Package: consoleDir, Run: "TestLive_RecordChanges",
		Old: "now != shown", New: "now != shown && now == \"\"",
	},
	{
		Name: "console: nested JSON is indented to gigabytes", Rule: "console",
		Dir: consoleDir, Func: "indentedSize", Package: consoleDir, Run: "TestRecords_DeeplyNestedAnswers",
		Old: "depth++", New: "",
	},
	{
		Name: "console: a message that was dropped is answered as missing", Rule: "console",
		Dir: consoleDir, Func: "(*Console).change", Package: consoleDir, Run: "TestChangeMessage_Drop",
		Old: `to == ""`, New: `to != "none"`,
	},
	{
		Name: "console: a call whose steps cannot be read cannot be decided", Rule: "console",
		Dir: consoleDir, Func: "(*Console).record", Package: consoleDir, Run: "TestRecord_StepsCannotBeDecrypted",
		Old: "err != nil && !unread", New: "unread || err != nil",
	},
	{
		Name: "console: a saga is decided by somebody who does not see its steps", Rule: "console",
		Dir: consoleDir, Func: "(*Console).record", Package: consoleDir, Run: "TestRecord_StepsOfSagaCannotBeRead",
		Old: "inDoubt && p.Saga && !unread", New: "inDoubt && p.Saga",
	},
	{
		Name: "console: a saga that cannot be read hides all others", Rule: "console",
		Dir: consoleDir, Func: "(*Console).sagas", Package: consoleDir, Run: "TestSagas_RecordCannotBeRead",
		Old: "case errors.Is(err, store.ErrCorrupt):", New: "case errors.Is(err, store.ErrLeaseLost):",
	},
	{
		Name: "console: a part of the store that is down hides the calls in doubt", Rule: "console",
		Dir: consoleDir, Func: "(*Console).read", Package: consoleDir, Run: "TestOverview_PartOfStoreDown",
		Old: "err != nil && answered", New: "err != nil && answered && l.Late",
	},
	{
		Name: "console: an outbox that is down hides the calls in doubt", Rule: "console",
		Dir: consoleDir, Func: "(*Console).overview", Package: consoleDir, Run: "TestOverview_OutboxDown",
		Old: "data.OutboxIsDown, data.OutboxDown = true, err.Error()", New: "return nil, err",
	},
	{
		Name: "console: a list that is not whole says that nothing is in doubt", Rule: "console",
		Dir: consoleDir, Func: "list.Whole", Package: consoleDir, Run: "TestOverview_PartOfStoreDown",
		Old: "!l.IsDown", New: "l.Entries == nil",
	},
	{
		Name: "console: a change before the stream begins is lost", Rule: "console",
		Dir: consoleDir, Func: "(*Console).live", Package: consoleDir, Run: "TestLive_ChangedBeforeTheStream",
		Old: `r.URL.Query().Get("shown")`, New: "stateOf(p.data(r.Context(), r))",
	},
	{
		Name: "console: a renewal of the lease replaces the page", Rule: "console",
		Dir: consoleDir, Func: "type entry", Package: consoleDir, Run: "TestLive_LeaseIsRenewed",
		Old: "Updated, Until, Now time.Time", New: "Updated, Until time.Time; Now time.Time",
	},
	{
		Name: "console: a page that shows an error shows it for ever", Rule: "console",
		Dir: consoleDir, Func: "(*Console).page", Package: consoleDir, Run: "TestLive_PageWithError",
		Old: "if p.live", New: "if p.live && err == nil",
	},
	{
		Name: "console: a HEAD of a stream never ends", Rule: "console",
		Dir: consoleDir, Func: "(*Console).live", Package: consoleDir, Run: "TestLive_Head",
		Old: "r.Method == http.MethodHead", New: "r.Method == http.MethodOptions",
	},
	{
		Name: "console: a record keeps a megabyte of reasons", Rule: "console",
		Dir: consoleDir, Func: "reasonIn", Package: consoleDir, Run: "TestChange_Mistake_MarksTheField",
		Old: "n > most", New: "n > most<<20",
	},
	{
		Name: "console: a mistake in a form has no field", Rule: "console",
		Dir: consoleDir, Func: "frame.Mark", Package: consoleDir, Run: "TestChange_Mistake_MarksTheField",
		Old: "f.Error == nil || f.Error.Field != field", New: "f.Operator != field",
	},
	{
		Name: "console: a browser that hangs up cuts a decision in its middle", Rule: "console",
		Dir: consoleDir, Func: "(*Console).change", Package: consoleDir, Run: "TestChange_BrowserHangsUp",
		Old: "context.WithoutCancel(r.Context())", New: "r.Context()",
	},
	{
		Name: "console: bytes that are no UTF-8 name another record", Rule: "console",
		Dir: consoleDir, Func: "keepBytes", Package: consoleDir, Run: "TestChange_TenantIsNoUTF8",
		Old: "v, ok := address[name]; ok", New: "v := address[name]; v == nil",
	},
	{
		Name: "console: a page of another site makes it search the store", Rule: "console",
		Dir: consoleDir, Func: "embedded", Package: consoleDir, Run: "TestPages_LoadedByAnotherSite",
		Old: "&& !link", New: "&& !link && site == \"\"",
	},
	{
		Name: "console: a message is dropped that somebody has sent again", Rule: "console",
		Dir: consoleDir, Func: "(*Console).changeMessage", Package: consoleDir, Run: "TestChangeMessage_StateHasChanged",
		Old: `now.State.String() != form.Get("state")`, New: "false && now.Attempts < 0",
	},
}
