package museum

// resultHeaders are seeded bugs of what a handler says about its answer, and of answers
// after which a client has to come again.
var resultHeaders = []Mutant{
	{
		Name: "an answer that asks to come again for the result is marked as a replay", Rule: "http",
		Dir: door, Func: "(*acceptWriter).asksAgain", Package: door, Run: "TestAccept_AnswerAsksToComeAgain_IsNoReplay",
		Old: "(v.Again || v.Effect == Doubt)", New: "false && v.Again",
	},
	{
		Name: "a handler's header that says that nothing was done is not read", Rule: "doubt",
		Dir: door, Func: "markOf", Package: door, Run: "TestResultHeader_OfAnswer_DecidesAsMark",
		Old: "return markNoEffect", New: "return unmarked",
	},
	{
		Name: "a client says by a header that an outer handler repeats what the answer means", Rule: "doubt",
		Dir: door, Func: "(*exchange).serve", Package: door, Run: "TestResultHeader_OfOthers_DoesNotCount",
		Old: "delete(e.w.Header(), resultHeader)", New: "",
	},
	{
		Name: "the client gets the header that is for Semel", Rule: "http",
		Dir: door, Func: "(*response).send", Package: door, Run: "TestResultHeader_StreamedAnswer_DecidesAndIsNotSent",
		Old: "delete(h, resultHeader)", New: "",
	},
	{
		Name: "Accept takes the header of an outer handler for its function's", Rule: "http",
		Dir: door, Func: "(*acceptor).ServeHTTP", Package: door, Run: "TestAccept_ResultHeaderOfOthers_DoesNotCount",
		Old: "delete(w.Header(), resultHeader) defer", New: "defer",
	},
	{
		Name: "Accept's function does not learn that its server cannot flush", Rule: "http",
		Dir: door, Func: "(*acceptWriter).FlushError", Package: door, Run: "TestAccept_ServerCannotFlush_FunctionLearnsIt",
		Old: "return http.NewResponseController(a.ResponseWriter).Flush()", New: "_ = http.NewResponseController(a.ResponseWriter).Flush(); return nil",
	},
	{
		Name: "a whole answer is short while it is streamed", Rule: "http",
		Dir: door, Func: "(*response).verdict", Package: door, Run: "TestJudge_AnswerIsStreamed_ShortOnlyIfPartIsMissing",
		Old: "a.returned && a.status != 0", New: "a.status != 0",
	},
	{
		Name: "a streamed answer is short by the part that was not buffered", Rule: "http",
		Dir: door, Func: "(*response).verdict", Package: door, Run: "TestJudge_AnswerIsStreamed_ShortOnlyIfPartIsMissing",
		Old: "a.declared > a.accepted", New: "a.declared > int64(len(a.body))",
	},
	{
		Name: "the answer after a panic of Accept's function is marked as a replay", Rule: "http",
		Dir: door, Func: "(*acceptWriter).end", Package: door, Run: "TestAccept_ResultHeaderOfOthers_DoesNotCount",
		Old: "!a.begun", New: "false",
	},
	{
		Name: "a client without rights learns that there is a record which cannot be read", Rule: "http",
		Dir: door, Func: "tellsOfKey", Package: door, Run: "TestAuthorize_Fails_UnreadableRecordIsOnlyLogged",
		Old: ", store.ErrCorrupt}", New: "}",
	},
	{
		Name: "nobody learns of an unreadable record if the client has no rights", Rule: "http",
		Dir: door, Func: "(*config).answerDuplicate", Package: door, Run: "TestAuthorize_Fails_UnreadableRecordIsOnlyLogged",
		Old: "logUnreadable(r, err)", New: "",
	},
}
