package museum

// doors are seeded bugs of the HTTP server's side.
var doors = []Mutant{
	{
		Name: "the encoding of an outer handler is kept without the encoded body", Rule: "rule 8",
		Dir: door, Func: "(*response).keepableHeader", Package: door, Run: "TestReplay_OuterHandlerCompresses",
		Old: "delete(h, name)", New: "_ = h",
	},
	{
		Name: "Set-Cookie is kept and replayed", Rule: "http", Parent: "M12: granit-dotnet#1151",
		Dir: door, Func: "forbidden", Package: door, Run: "TestReplay_Headers_ByAllowList",
		Old: `return strings.HasPrefix(name, "Set-Cookie") ||`, New: "return",
	},
	{
		Name: "an empty list of replay headers means all", Rule: "http", Parent: "M14: fiber",
		Dir: door, Func: "(*config).keepable", Package: door, Run: "TestReplay_Headers_ByAllowList",
		Old: "return c.replayable[name] &&", New: "return (len(c.replayable) == 0 || c.replayable[name]) &&",
	},
	{
		Name: "a header for one connection is kept", Rule: "http",
		Dir: door, Func: "listed", Package: door, Run: "TestKeptHeaders_NamedByConnection_AreLeftOut",
		Old: "if strings.EqualFold(strings.TrimSpace(n), name) {", New: "if n == name {",
	},
	{
		Name: "a streamed answer is replayed as a whole one", Rule: "rule 10", Parent: "M11: fiber#4287, granit-dotnet#1151",
		Dir: door, Func: "(*response).outcome", Package: door, Run: "TestFlush_ServerCannotFlush_ChangesNothing|TestStream_Flush_StoresTombstoneFirst|TestStream_OverMaxResponse_IsNotKept",
		Old: "Gone: withoutBody || a.cfg.NoStore", New: "Gone: a.cfg.NoStore",
	},
	{
		Name: "an answer is streamed before it is recorded", Rule: "rule 10", Parent: "M11: fiber#4287",
		Dir: door, Func: "(*response).stream", Package: door, Run: "TestFlush_ServerCannotFlush_ChangesNothing|TestStream_Flush_StoresTombstoneFirst|TestStream_LeaseLost_IsRefused",
		Old: "err := driver.Complete(a.request.Context(), a.execution, a.outcome(true))", New: "var err error",
	},
	{
		Name: "only the last part of an answer is kept", Rule: "rule 8",
		Dir: door, Func: "write", Package: door, Run: "TestParity_ProtectedAndBare_SameAnswer|TestWriter_WriteWhileStoring_ChangesNeitherStoredNorSent",
		Old: "a.body = append(a.body, p...)", New: "a.body = append(a.body[:0:0], p...)",
	},
	{
		Name: "an answer that was cut short is kept as a whole one", Rule: "rule 10",
		Dir: door, Func: "(*response).verdict", Package: door, Run: "TestReplay_AnswerShorterThanDeclared_IsTombstone",
		Old: "a.declared > a.accepted &&", New: "false &&",
	},
	{
		Name: "a body is stored despite NoStore", Rule: "http",
		Dir: door, Func: "(*response).outcome", Package: door, Run: "TestNoStore_Duplicate_GetsStatusOnly",
		Old: "|| a.cfg.NoStore}", New: "}",
	},
	{
		Name: "that a service does not know the outcome is kept as the outcome", Rule: "doubt",
		Dir: door, Func: "Judge", Package: door, Run: "TestJudge_EachAnswer_HasEffect",
		Old: "a.Header.Get(outcomeHeader) == outcomeUnknown", New: "false",
	},
	{
		Name: "an empty answer, which a service has not kept, looks like the result", Rule: "rule 10",
		Dir: door, Func: "Judge", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestReplay_InnerAnswerNotKept",
		Old: "|| saysNotKept(a.Header)", New: "",
	},
	{
		Name: "the mismatch that another Semel reports is kept", Rule: "http",
		Dir: door, Func: "Judge", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestReplay_InnerRefuses",
		Old: "case v.Effect == Kept && isRefusal(a.Status, a.Header):", New: "case false:",
	},
	{
		Name: "a header of another Semel that a handler passes on makes its result no result", Rule: "rule 8",
		Dir: door, Func: "isRefusal", Package: door, Run: "TestJudge_EachAnswer_HasEffect",
		Old: "status >= http.StatusBadRequest &&", New: "",
	},
	{
		Name: "the lost answer of another Semel had no effect", Rule: "doubt",
		Dir: door, Func: "Judge", Package: door, Run: "TestJudge_EachAnswer_HasEffect",
		Old: "case v.Effect == Kept && isRefusal(a.Status, a.Header):", New: "case isRefusal(a.Status, a.Header):",
	},
	{
		Name: "the answer to a duplicate of a parked request looks final", Rule: "doubt",
		Dir: door, Func: "(*config).refuse", Package: door, Run: "TestVerdict_StatusMarkPolicy",
		Old: "h.Set(outcomeHeader, outcomeUnknown)", New: "",
	},
	{
		Name: "a 5xx is a result", Rule: "http",
		Dir: door, Func: "judgeStatus", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestVerdict_StatusMarkPolicy_DecidesOutcome",
		Old: "if status >= 200 && status < 500 {", New: "if status >= 200 {",
	},
	{
		Name: "a 5xx had no effect", Rule: "doubt",
		Dir: door, Func: "judgeStatus", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestVerdict_StatusMarkPolicy_DecidesOutcome",
		Old: `return Verdict{Reason: "the server failed"}`, New: `return Verdict{Effect: NothingDone, Reason: "the server failed"}`,
	},
	{
		Name: "a 401 is a result", Rule: "http",
		Dir: door, Func: "judgeStatus", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestVerdict_StatusMarkPolicy_DecidesOutcome",
		Old: "case http.StatusUnauthorized,", New: "case",
	},
	{
		Name: "silence is an empty 200", Rule: "doubt", Parent: "chi: the Timeout middleware; Echo: WrapMiddleware",
		Dir: door, Func: "(*response).finish", Package: door, Run: "TestSilence_Handler_IsNotKept",
		Old: "(a.ownMark() != unmarked || a.verdict().Effect == Kept)", New: "true",
	},
	{
		Name: "silence had no effect", Rule: "doubt",
		Dir: door, Func: "Judge", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestSilence_Handler_IsNotKept",
		Old: `return Verdict{Reason: "the context ended before an answer was written", Again: true}`,
		New: `return Verdict{Effect: NothingDone, Reason: "the context ended before an answer was written", Again: true}`,
	},
	{
		Name: "499 is a result", Rule: "doubt", Parent: "nginx: 499",
		Dir: door, Func: "judgeStatus", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestVerdict_StatusMarkPolicy_DecidesOutcome",
		Old: `return Verdict{Reason: "the client left before an answer was written"}`, New: `return Verdict{Effect: Kept, Reason: "the client left before an answer was written"}`,
	},
	{
		Name: "behind StripPrefix a redirect to log in and come back is a result", Rule: "http",
		Dir: door, Func: "(*response).verdict", Package: door, Run: "TestVerdict_RedirectNamesPathBelowStripPrefix_NothingDone",
		Old: "SentPath: sent", New: "SentPath: sent[:0]",
	},
	{
		Name: "a redirect that asks elsewhere is a result", Rule: "http", Parent: "Flask, FastAPI: slash redirects",
		Dir: door, Func: "judgeStatus", Package: door, Run: "TestJudge_EachAnswer_HasEffect|TestRedirect_AsksElsewhere_IsNotKept",
		Old: "http.StatusTemporaryRedirect, http.StatusPermanentRedirect:", New: "http.StatusTemporaryRedirect:",
	},
	{
		Name: "a redirect to the log-in page is a result", Rule: "http",
		Dir: door, Func: "leadsBack", Package: door, Run: "TestJudge_EachAnswer_HasEffect",
		Old: "&& slices.Contains(paths, back.Path) {", New: "&& slices.Contains(paths[:0], back.Path) {",
	},
	{
		Name: "an answer that broke off keeps its mark", Rule: "doubt",
		Dir: door, Func: "(*response).breakOff", Package: door, Run: "TestBroken_NothingSent_AnotherAnswerIsDoubt",
		Old: "a.broken, a.mark = true, unmarked", New: "a.broken = true",
	},
	{
		Name: "the boundary of a form is a part of its payload", Rule: "rule 12", Parent: "fetch: a new boundary in each repeat",
		Dir: door, Func: "(*config).fingerprint", Package: door, Run: "TestPayload_Multipart_ComparesParts",
		Old: `h := c.hashHead(r, media, "parts")`, New: `h := c.hashHead(r, media, boundary)`,
	},
	{
		Name: "bodies without a boundary line are one payload", Rule: "rule 12",
		Dir: door, Func: "hashParts", Package: door, Run: "TestPayload_Multipart_ComparesParts",
		Old: "if err == io.EOF {", New: "if errors.Is(err, io.EOF) {",
	},
	{
		Name: "a header moves into the body", Rule: "rule 12",
		Dir: door, Func: "(*config).hashHead", Package: door, Run: "TestPayload_HeaderMovedIntoBody",
		Old: `b = appendPart(b, "")`, New: "",
	},
	{
		Name: "a body that was cut is whole", Rule: "http",
		Dir: door, Func: "(*spool).fill", Package: door, Run: "TestSpool_ReaderWrapsEOF",
		Old: "if err == io.EOF {", New: "if errors.Is(err, io.EOF) {",
	},
	{
		Name: "the server guesses that a reconciler's answer is a page", Rule: "http",
		Dir: door, Func: "(*config).replay", Package: door, Run: "TestReplay_ReconciledOutcome|TestReplay_TypeNotKept",
		Old: `case len(h["Content-Type"]) == 0:`, New: "case false:",
	},
	{
		Name: "the bytes of a form's parts do not count", Rule: "rule 12",
		Dir: door, Func: "hashParts", Package: door, Run: "TestPayload_Multipart_ComparesParts",
		Old: "all.Write(content.Sum(nil))", New: "",
	},
	{
		Name: "the fingerprint leaves the host out", Rule: "rule 12",
		Dir: door, Func: "(*config).hashHead", Package: door, Run: "TestPayload_Host_ComparesNames|TestPayload_Default_ComparesParts",
		Old: `if host := virtualHost(r.Host); host != "" {`, New: `if host := ""; host != "" {`,
	},
	{
		Name: "a method in small letters is not protected", Rule: "http", Parent: "fetch: patch is sent as it is spelled",
		Dir: door, Func: "(*config).protects", Package: door, Run: "TestMethods_OtherSpelling_IsProtected",
		Old: "return strings.EqualFold(m, method)", New: "return m == method",
	},
	{
		Name: "a replay has no headers for browsers", Rule: "http",
		Dir: door, Func: "forbidden", Package: door, Run: "TestReplay_BrowserHeaders_AreKept|TestReplay_Headers_ByAllowList",
		Old: `strings.HasPrefix(name, "Proxy-") ||`, New: `strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "Access-Control-") ||`,
	},
	{
		Name: "the hint for a run in progress is the rest of its lease", Rule: "http",
		Dir: "driver", Func: "RetryHint", Package: door, Run: "TestProblem_EachReason_HasCode|TestClauses_OfDraft07_Hold",
		Old: "if e.Running <= 0 {", New: "if e.Running >= 0 {",
	},
	{
		Name: "a body is read before the scope is known", Rule: "http",
		Dir: door, Func: "(*config).newCall", Package: door, Run: "TestMiddleware_NoTenant_ReadsNoBody",
		Old: "call, p = c.identify(r, tenant) if p != nil { return call, true, p } payload, p := c.readPayload(r, s)",
		New: "payload, p := c.readPayload(r, s); if p != nil { return call, true, p }; call, p = c.identify(r, tenant)",
	},
	{
		Name: "the fingerprint leaves the query out", Rule: "rule 12",
		Dir: door, Func: "(*config).hashHead", Package: door, Run: "TestPayload_Default_ComparesParts",
		Old: "b = appendPart(b, r.URL.RawQuery)", New: "",
	},
	{
		Name: "the fingerprint leaves the end of a body out", Rule: "rule 12",
		Dir: door, Func: "(*spool).spill", Package: door, Run: "TestPayload_LastByteDiffers_HashDiffers|TestSpool_AnySize_HashesAndRepeats",
		Old: "_, herr := h.Write(buf)", New: "_, herr := h.Write(buf[:min(len(buf), 512)])",
	},
	{
		Name: "a refusal tells a client without rights that a key exists", Rule: "http",
		Dir: door, Func: "(*config).answerDuplicate", Package: door, Run: "TestAuthorize_Fails_NoAnswerTellsOfTheKey",
		Old: "|| tellsOfKey(err)) {", New: ") {",
	},
	{
		Name: "Authorize is not asked before a tombstone", Rule: "http",
		Dir: door, Func: "(*config).answerDuplicate", Package: door, Run: "TestAuthorize_Fails_NothingKeptIsShown",
		Old: "if c.Authorize != nil && (err == nil || failed || gone || tellsOfKey(err)) {", New: "if c.Authorize != nil && err == nil {",
	},
	{
		Name: "an answer without a lease is sent", Rule: "rule 9",
		Dir: door, Func: "(*exchange).answer", Package: door, Run: "TestAnswer_LeaseLost_IsDropped",
		Old: `
			case errors.Is(err, semel.ErrLeaseLost) || a.err != nil:
				ownAnswer = false`,
		New: `
			case errors.Is(err, semel.ErrLeaseLost) || a.err != nil:
				ownAnswer = true`,
	},
	{
		Name: "an answer that could not be stored has no marker", Rule: "rule 9",
		Dir: door, Func: "(*exchange).answer", Package: door, Run: "TestAnswer_StoreFails_SentAsNotStored",
		Old: "ownAnswer, marker = true, outcomeNotStored", New: "ownAnswer = true",
	},
	{
		Name: "a goroutine writes after the handler returned", Rule: "rule 8",
		Dir: door, Func: "(*handlerWriter).close", Package: door, Run: "TestWriter_WriteAfterReturn_Fails|TestWriter_GoroutineAfterReturn_ReachesNoRequest|TestWriter_HeaderAfterReturn_IsIgnored",
		Old: "w.response = nil", New: "",
	},
	{
		Name: "a replayed response is not marked", Rule: "http",
		Dir: door, Func: "(*config).setReplayHeaders", Package: door, Run: "TestMiddleware_Duplicate_GetsFirstAnswer|TestReplay_Headers_ByAllowList",
		Old: `h[replayedHeader] = []string{"true"}`, New: "",
	},
	{
		Name: "a client may wait longer than the route allows", Rule: "rule 14",
		Dir: door, Func: "(*config).wait", Package: door, Run: "TestPreferWait_Values_AreParsed|TestMiddleware_PreferWait_OnlyShortensWait",
		Old: "return min(c.Wait, time.Duration(n)*time.Second)", New: "return time.Duration(n) * time.Second",
	},
	{
		Name: "two key headers count as one", Rule: "http",
		Dir: door, Func: "findKey", Package: door, Run: "TestKey_SeveralLinesOrHeaders_AreRefused",
		Old: "if found || len(lines) > 1 {", New: "if found {",
	},
	{
		Name: "an answer with a refused end is kept as a whole one", Rule: "rule 10",
		Dir: door, Func: "(*response).verdict", Package: door, Run: "TestReplay_AnswerShorterThanDeclared_IsTombstone",
		Old: "a.declared > a.accepted &&", New: "a.declared > a.written &&",
	},
	{
		Name: "a repeated transaction leaves the files of its forms", Rule: "http",
		Dir: door, Func: "(*exchange).handle", Package: door, Run: "TestBody_MultipartForm_LeavesNoFiles",
		Old: `
			e.response.discard()
			e.removeForm()`,
		New: "e.response.discard()",
	},
	{
		Name: "a goroutine sets a trailer after the handler returned", Rule: "rule 8",
		Dir: door, Func: "(*handlerWriter).Header", Package: door, Run: "TestWriter_HeaderAfterReturn_IsIgnored",
		Old: "if w.closed.Load() {", New: "if false {",
	},
	{
		Name: "a transaction that runs again gets the request as the first run left it", Rule: "atomic",
		Dir: door, Func: "(*exchange).handlerRequest", Package: door, Run: "TestMiddleware_RunnerRepeatsHandler_LastAnswerCounts",
		Old: "e.r.Clone(ctx)", New: "e.r.WithContext(ctx)",
	},
	{
		Name: "a client that leaves counts as a wrong configuration", Rule: "http",
		Dir: door, Func: "(*exchange).handle", Package: door, Run: "TestDetach_ClientLeavesBeforeHandler_IsStoreUnavailable",
		Old: "semel.NoEffect(&semel.Error{Reason: semel.ErrUnavailable, Operation: x.Operation(), Cause: context.Cause(e.r.Context())})",
		New: "semel.NoEffect(context.Cause(e.r.Context()))",
	},
	{
		Name: "an answer without a sent token is marked as a replay", Rule: "http",
		Dir: door, Func: "(*acceptWriter).asksAgain", Package: door, Run: "TestAccept_TokenNotSent_ClientRepeats",
		Old: "return v.Effect != Kept", New: "return v.Effect == 99",
	},
	{
		Name: "forms parsed by an outer handler are all one payload", Rule: "rule 12",
		Dir: door, Func: "(*config).spoolBody", Package: door, Run: "TestBody_FormParsedByOuterHandler_IsMisconfigured",
		Old: "(r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil)", New: "r.ContentLength > 0",
	},
	{
		Name: "a 413 names another limit", Rule: "http",
		Dir: door, Func: "(*config).bodyProblem", Package: door, Run: "TestBody_OverOuterLimit_Is413",
		Old: "limit = outer.Limit", New: "_ = outer.Limit",
	},
	{
		Name: "trailers that were not announced are lost", Rule: "http",
		Dir: door, Func: "(*response).send", Package: upstream, Run: "TestAnswerTrailers_ReachFirstClient",
		Old: "if err == nil && a.heldFlush &&", New: "if err == nil && a.heldFlush && a.mode == streaming &&",
	},
	{
		Name: "a client repeats without end because a record cannot be read", Rule: "http",
		Dir: door, Func: "(*config).problemOfReason", Package: door, Run: "TestMiddleware_ResultEncryptedAndServerHasNoKey_500AndLogSaysWhy",
		Old: "p = problem(CodeRecordUnreadable, e)", New: "p = problem(CodeStoreUnavailable, e)",
	},
}
