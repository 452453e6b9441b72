package museum

// The HTTP server's side.
var doors = []Mutant{
	{
		Name: "Set-Cookie is kept and replayed", Rule: "http", Parent: "M12: granit-dotnet#1151",
		File: "semelhttp/headers.go", Package: door, Run: "TestReplayedHeaders",
		Old: `return strings.HasPrefix(name, "Set-Cookie") || `, New: "return ",
	},
	{
		Name: "an empty list of headers means all", Rule: "http", Parent: "M14: fiber",
		File: "semelhttp/headers.go", Package: door, Run: "TestReplayedHeaders",
		Old: "return c.replayable[name] && ", New: "return (len(c.replayable) == 0 || c.replayable[name]) && ",
	},
	{
		Name: "a header for one connection is kept", Rule: "http",
		File: "semelhttp/headers.go", Package: door, Run: "TestAHeaderThatIsForOneConnection",
		Old: "if strings.EqualFold(strings.TrimSpace(n), name) {", New: "if n == name {",
	},
	{
		Name: "what was streamed is replayed as if it were whole", Rule: "rule 10", Parent: "M11: fiber#4287, granit-dotnet#1151",
		File: "semelhttp/verdict.go", Package: door, Run: "TestAFlush|TestAnAnswerOverTheLimit",
		Old: "Gone: streamed || short || c.cfg.NoStore", New: "Gone: short || c.cfg.NoStore",
	},
	{
		Name: "what a lost store was given is written again", Rule: "http",
		File: "semelhttp/verdict.go", Package: door, Run: "TestWhatTheStoreWasGiven",
		Old: "room = nil\n", New: "_ = room\n",
	},
	{
		Name: "an answer is streamed before it is recorded", Rule: "rule 10", Parent: "M11: fiber#4287",
		File: "semelhttp/stream.go", Package: door, Run: "TestAFlush|TestAHandlerThatHasLostItsLease",
		Old: "err := c.x.Complete(c.r.Context(), c.outcome(true))", New: "var err error",
	},
	{
		Name: "only the last part of an answer is kept", Rule: "rule 8",
		File: "semelhttp/capture.go", Package: door, Run: "TestAProtectedHandlerAnswers|TestWhatIsStored",
		Old: "c.body = append(c.body, p...)", New: "c.body = append(c.body[:0:0], p...)",
	},
	{
		Name: "an answer that was cut short is kept as whole", Rule: "rule 10",
		File: "semelhttp/verdict.go", Package: door, Run: "TestAnAnswerThatWasCutShort",
		Old: "short := c.declared > int64(len(c.body)) && ", New: "short := false && ",
	},
	{
		Name: "no-store is stored", Rule: "http",
		File: "semelhttp/verdict.go", Package: door, Run: "TestNoStoreKeepsNoBody",
		Old: " || c.cfg.NoStore}", New: "}",
	},
	{
		Name: "a 5xx is a result", Rule: "http",
		File: "semelhttp/verdict.go", Package: door, Run: "TestKeepDefault|TestWhatBecomes",
		Old: "return status >= 200 && status < 500", New: "return status >= 200",
	},
	{
		Name: "a 5xx had no effect", Rule: "doubt",
		File: "semelhttp/verdict.go", Package: door, Run: "TestWhatBecomes",
		Old: "case c.status >= 400 && c.status < 500:", New: "case c.status >= 400:",
	},
	{
		Name: "a 401 is a result", Rule: "http",
		File: "semelhttp/verdict.go", Package: door, Run: "TestKeepDefault|TestWhatBecomes",
		Old: "case http.StatusUnauthorized, ", New: "case ",
	},
	{
		Name: "a body is read for whoever sends one", Rule: "http",
		File: "semelhttp/request.go", Package: door, Run: "TestNoBodyIsReadForARequestWithoutAScope",
		Old: "\twhose, p := scope.resolve(r)\n\tif p != nil {\n\t\treturn call, true, p\n\t}\n\tpayload, p := c.read(r, s)\n",
		New: "\tpayload, p := c.read(r, s)\n\tif p != nil {\n\t\treturn call, true, p\n\t}\n\twhose, p := scope.resolve(r)\n",
	},
	{
		Name: "a body that was handed out is the next request's", Rule: "rule 8",
		File: "semelhttp/spool.go", Package: door, Run: "TestMemoryOfASpool",
		Old: "if s.lent || cap", New: "if cap",
	},
	{
		Name: "the fingerprint passes over the query", Rule: "rule 12",
		File: "semelhttp/fingerprint.go", Package: door, Run: "TestWhatTheDefaultPayload",
		Old: "r.URL.EscapedPath(), r.URL.RawQuery, ", New: "r.URL.EscapedPath(), ",
	},
	{
		Name: "the fingerprint passes over the end of a body", Rule: "rule 12",
		File: "semelhttp/spool.go", Package: door, Run: "TestTheWholeBodyCounts|TestSpoolHashes",
		Old: "_, herr := h.Write(buf)", New: "_, herr := h.Write(buf[:min(len(buf), 512)])",
	},
	{
		Name: "who may see a tombstone is not asked", Rule: "http",
		File: "semelhttp/replay.go", Package: door, Run: "TestAuthorizeIsAsked",
		Old: "if c.Authorize != nil && (err == nil || failed || gone) {", New: "if c.Authorize != nil && err == nil {",
	},
	{
		Name: "an answer without a lease is sent", Rule: "rule 9",
		File: "semelhttp/exchange.go", Package: door, Run: "TestALostLeaseDrops",
		Old: "\t\tcase errors.Is(err, semel.ErrLeaseLost) || c.err != nil:\n\t\t\town = false\n", New: "\t\tcase errors.Is(err, semel.ErrLeaseLost) || c.err != nil:\n\t\t\town = true\n",
	},
	{
		Name: "an answer that could not be stored has no mark", Rule: "rule 9",
		File: "semelhttp/exchange.go", Package: door, Run: "TestAnAnswerThatCannotBeStored",
		Old: "own, marker = true, outcomeNotStored", New: "own = true",
	},
	{
		Name: "a goroutine writes into an answer that was sent", Rule: "rule 8",
		File: "semelhttp/loan.go", Package: door, Run: "TestAHandlersGoroutine|TestWhatAHandlerLeavesBehind",
		Old: "\tl.c = nil\n", New: "",
	},
	{
		Name: "a replayed response is not marked", Rule: "http",
		File: "semelhttp/headers.go", Package: door, Run: "TestADuplicateGetsTheFirstAnswer|TestReplayedHeaders",
		Old: `h[c.ReplayedHeader] = one("true")`, New: `_ = one("true")`,
	},
	{
		Name: "a client may wait as long as it likes", Rule: "rule 14",
		File: "semelhttp/request.go", Package: door, Run: "TestPreferWait|TestThePreferenceToWait",
		Old: "return min(c.Wait, time.Duration(n)*time.Second)", New: "return time.Duration(n) * time.Second",
	},
	{
		Name: "two keys are one", Rule: "http",
		File: "semelhttp/key.go", Package: door, Run: "TestOneKeyInOneLine",
		Old: "if found || len(lines) > 1 {", New: "if found {",
	},
	{
		Name: "an answer whose end was refused is kept as whole", Rule: "rule 10",
		File: "semelhttp/verdict.go", Package: door, Run: "TestAnAnswerThatWasCutShort",
		Old: "short := c.declared > int64(len(c.body)) && ", New: "short := c.declared > c.written && ",
	},
	{
		Name: "a repeated transaction leaves the files of its forms", Rule: "http",
		File: "semelhttp/exchange.go", Package: door, Run: "TestAMultipartFormLeavesNoFiles",
		Old: "\t\te.capture = capture{}\n\t\te.removeForm()\n", New: "\t\te.capture = capture{}\n",
	},
	{
		Name: "what a handler leaves behind sets a trailer", Rule: "rule 8",
		File: "semelhttp/loan.go", Package: door, Run: "TestWhatAHandlerLeavesBehindSets",
		Old: "if l.ended.Load() {", New: "if false {",
	},
	{
		Name: "a client that leaves makes the server's set-up wrong", Rule: "http",
		File: "semelhttp/exchange.go", Package: door, Run: "TestAClientThatLeftJustBefore",
		Old: "semel.NoEffect(&semel.Error{Reason: semel.ErrUnavailable, Operation: x.Scope().Operation(), Cause: context.Cause(e.r.Context())})",
		New: "semel.NoEffect(context.Cause(e.r.Context()))",
	},
	{
		Name: "a token that was not handed on is marked as a replay", Rule: "http",
		File: "semelhttp/accept.go", Package: door, Run: "TestAClientComesAgain",
		Old: "if status >= 200 && !keepDefault(status) {", New: "if status >= 600 {",
	},
	{
		Name: "forms that were parsed in front are all one payload", Rule: "rule 12",
		File: "semelhttp/request.go", Package: door, Run: "TestAFormThatWasParsedInFront",
		Old: "(r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil)", New: "r.ContentLength > 0",
	},
	{
		Name: "a 413 names another limit", Rule: "http",
		File: "semelhttp/refuse.go", Package: door, Run: "TestAnotherLimitInFront",
		Old: "limit = front.Limit", New: "_ = front.Limit",
	},
	{
		Name: "trailers that were not announced are lost", Rule: "http",
		File: "semelhttp/stream.go", Package: upstream, Run: "TestAnswerTrailers_ReachFirstClient",
		Old: "if err == nil && c.held && ", New: "if err == nil && c.held && c.mode == streaming && ",
	},
}
