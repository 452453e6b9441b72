package museum

// AWS Lambda: the end of an invocation, and the records of a batch. Each fault makes a
// function that looks right until a record fails or an invocation times out.
var lambdas = []Mutant{
	{
		Name: "a claim holds beyond the end that its context names", Rule: "rule 7", Parent: "a time-out that leaves an orphan (Powertools Python #4759)",
		Dir: core, Func: "(*Guard).leaseWithin", Package: core, Run: "TestLease_ContextHasLeaseEnd",
		Old: "return min(g.options.Lease, max(minLease, time.Until(end)))", New: "_ = end\nreturn g.options.Lease",
	},
	{
		Name: "a renewal holds beyond the end that its context names", Rule: "rule 7", Parent: "a time-out that leaves an orphan (Powertools Python #4759)",
		Dir: core, Func: "(*Guard).execute", Package: core, Run: "TestLease_ContextHasLeaseEnd",
		Old: "end: leaseEnd(ctx)", New: "end: instant{}",
	},
	{
		Name: "a later attempt claims beyond the end that its context names", Rule: "rule 7",
		Dir: core, Func: "(*pendingCall).swap", Package: core, Run: "TestLease_ContextHasLeaseEnd",
		Old: "p.Lease = c.guard.leaseWithin(ctx)", New: "p.Lease = c.guard.options.Lease",
	},
	{
		Name: "a handler without a deadline goes on after the end that its context names", Rule: "rule 6",
		Dir: core, Func: "(*Guard).execute", Package: core, Run: "TestLease_ContextHasLeaseEnd",
		Old: "context.WithDeadlineCause(handlerCtx, end, ErrLeaseLost)", New: "context.WithDeadlineCause(handlerCtx, end.Add(time.Hour), ErrLeaseLost)",
	},
	{
		Name: "Lambda: the lease outlives the invocation", Rule: "rule 7", Parent: "a time-out that leaves an orphan (Powertools Python #4759)",
		Dir: lambda, Func: "withinInvocation", Package: lambda, Run: "TestWrap_HandlerIgnoresTimeout",
		Old: "driver.LeaseUntil(ctx, end)", New: "driver.LeaseUntil(ctx, end.Add(time.Hour))",
	},
	{
		Name: "Lambda: no time is left to store the outcome", Rule: "rule 9",
		Dir: lambda, Func: "withinInvocation", Package: lambda, Run: "TestWrap_HandlerObeysContext",
		Old: "end.Add(-reserve)", New: "end.Add(-reserve/1000)",
	},
	{
		Name: "Lambda: an event of another kind runs without protection", Rule: "http",
		Dir: lambda, Func: "newRequest", Package: lambda, Run: "TestProxy_PartsAreNullOrAbsent",
		Old: `p.method == ""`, New: "false",
	},
	{
		Name: "Lambda: a wrong length that the handler names makes the answer too short to keep", Rule: "rule 8",
		Dir: lambda, Func: "writeResponse", Package: lambda, Run: "TestProxy_ResponseThatGatewayTakes",
		Old: "method != http.MethodHead", New: "method == http.MethodHead",
	},
	{
		Name: "Lambda: a body that a gateway drops is an error for the first caller only", Rule: "rule 8",
		Dir: lambda, Func: "writeResponse", Package: lambda, Run: "TestProxy_ResponseThatGatewayTakes",
		Old: "!errors.Is(err, http.ErrBodyNotAllowed)", New: "true",
	},
	{
		Name: "Lambda: different texts that are no Unicode are one key", Rule: "rule 12",
		Dir: lambda, Func: "keyText", Package: lambda, Run: "TestSQS_KeysThatAreNoUnicode",
		Old: "strings.ContainsRune(*text, utf8.RuneError)", New: "false",
	},
	{
		Name: "MCP: different texts that are no Unicode are one key", Rule: "rule 12",
		Dir: tool, Func: "checkText", Package: tool, Run: "TestKeySource_EachCall",
		Old: "strings.ContainsRune(s, utf8.RuneError)", New: "false",
	},
	{
		Name: "MCP: two long IDs are one key", Rule: "rule 12",
		Dir: tool, Func: "shortNumbers", Package: tool, Run: "TestHash_Numbers",
		Old: "len(digits) <= exactDigits", New: "len(digits) < 99",
	},
	{
		Name: "Lambda: the chosen fields are not compared", Rule: "rule 12", Parent: "payload check skipped (Powertools TypeScript #2058, Java #2260)",
		Dir: lambda, Func: "fieldsAt", Package: lambda, Run: "TestWrap_OtherPayload",
		Old: "fields[p] = value", New: "_ = value\nfields[p] = json.RawMessage(`0`)",
	},
	{
		Name: "Lambda: a later message of a FIFO group overtakes one that failed", Rule: "batch",
		Dir: lambda, Func: "(*batch).runOne", Package: lambda, Run: "TestSQS_FIFO",
		Old: "case b.stopped[r.group]:", New: "case false:",
	},
	{
		Name: "Lambda: a failure stops the other groups, too", Rule: "batch",
		Dir: lambda, Func: "messageGroup", Package: lambda, Run: "TestSQS_FIFO",
		Old: `return "group " + m.Attributes["MessageGroupId"]`, New: `return "group "`,
	},
	{
		Name: "Lambda: a stream goes on after a record that failed", Rule: "batch",
		Dir: lambda, Func: "const shard", Package: lambda, Run: "TestKinesis_RecordFails",
		Old: `shard = "shard"`, New: `shard = ""`,
	},
	{
		Name: "Lambda: a record that did not run is not reported", Rule: "batch",
		Dir: lambda, Func: "batch.runAll", Package: lambda, Run: "TestSQS_FIFO",
		Old: "b.reported = append(b.reported, r.id)", New: "if err != errAfterFailure {\nb.reported = append(b.reported, r.id)\n}",
	},
	{
		Name: "Lambda: a record that failed for good is lost", Rule: "batch",
		Dir: lambda, Func: "(*batch).once", Package: lambda, Run: "TestSQS_RecordFails",
		Old: "failed {\nreturn err\n}", New: "failed {\nreturn nil\n}",
	},
	{
		Name: "Lambda: one of two keys in two spellings is taken", Rule: "http",
		Dir: lambda, Func: "headerOf", Package: lambda, Run: "TestProxy_TwoKeysInTwoSpellings",
		Old: "append(h[same], multi[name]...)", New: "multi[name]",
	},
	{
		Name: "Lambda: a panic counts as done", Rule: "batch",
		Dir: lambda, Func: "recovered", Package: lambda, Run: "TestSQS_RecordFails",
		Old: `err = fmt.Errorf("semellambda: %s panicked: %v", name, p)`, New: `_ = fmt.Errorf("semellambda: %s panicked: %v", name, p)`,
	},
	{
		Name: "Lambda: a key function that panics for one record fails the whole batch", Rule: "batch",
		Dir: lambda, Func: "(*batch).runOne", Package: lambda, Run: "TestSQS_OptionPanicsForOneRecord_OthersRun",
		Old: `recovered("Options.Key, Tenant or Payload", func() (err error) {`, New: `func(fn func() error) error { return fn() }(func() (err error) {`,
	},
	{
		Name: "Lambda: a key that failed runs again in its batch", Rule: "batch",
		Dir: lambda, Func: "(*batch).runOne", Package: lambda, Run: "TestSQS_DuplicatesInBatch",
		Old: "if b.failed[key] {", New: "if b.failed[key] && false {",
	},
	{
		Name: "Lambda: an empty list of failures is null", Rule: "batch",
		Dir: lambda, Func: "SQS", Package: lambda, Run: "TestSQS_AllDone",
		Old: "response.BatchItemFailures = []events.SQSBatchItemFailure{}", New: "response.BatchItemFailures = nil",
	},
	{
		Name: "Lambda: the error of a transaction that was overtaken hides the replay", Rule: "atomic",
		Dir: lambda, Func: "Proxy", Package: lambda, Run: "TestProxy_TransactionOvertaken",
		Old: `w.header.Get("Idempotent-Replayed") == ""`, New: "true",
	},
	{
		Name: "Lambda: a handler's error is an answer of the function", Rule: "http",
		Dir: lambda, Func: "failed", Package: lambda, Run: "TestProxy_AnswerIsNoResult",
		Old: "w.WriteHeader(http.StatusBadGateway)\nreturn err", New: "w.WriteHeader(http.StatusOK)\nreturn err",
	},
	{
		Name: "Lambda: a detached handler goes on until its process is stopped", Rule: "rule 9",
		Dir: lambda, Func: "Proxy", Package: lambda, Run: "TestProxy_Detach_HandlersContextEndsBeforeInvocation",
		Old: "own.Detach = false", New: "_ = own.Detach",
	},
	{
		Name: "Lambda: two types of events share a key of the body", Rule: "scope",
		Dir: lambda, Func: "envelope.keyOf", Package: lambda, Run: "TestSQS_SameBodyOfTwoTypes_BothRun",
		Old: `kind == "" ||`, New: `kind != "" ||`,
	},
	{
		Name: "Lambda: a message of another queue under one key is a duplicate", Rule: "scope",
		Dir: lambda, Func: "envelope.payload", Package: lambda, Run: "TestSQS_SameBodyOfTwoQueues_IsReported",
		Old: "}{e.source, e.eventType, v}", New: `}{"", e.eventType, v}`,
	},
	{
		Name: "Lambda: a message in the dead letters is of another queue", Rule: "scope",
		Dir: lambda, Func: "envelopeOf", Package: lambda, Run: "TestSQS_SameBodyOfTwoQueues_IsReported",
		Old: `if arn == "" {`, New: `if arn != "-" {`,
	},
	{
		Name: "Lambda: a record of a stream that was made again is of another table", Rule: "scope",
		Dir: lambda, Func: "tableName", Package: lambda, Run: "TestStreams_SameRecordOfTwoStreams_IsReported",
		Old: `table, _, _ = strings.Cut(table, "/")`, New: "",
	},
}
