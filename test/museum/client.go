package museum

// clients are seeded bugs of the HTTP client's side.
var clients = []Mutant{
	{
		Name: "net/http sends a POST again by itself", Rule: "sent twice", Parent: "net/http: a request with a key counts as repeatable",
		Dir: door, Func: "NoResend", Package: door, Run: "TestNoResend_ConnectionBreaks_SendsOnce|TestNoResend_ReverseProxy_SendsOnce",
		Old: "r.GetBody = nil", New: "",
	},
	{
		Name: "net/http sends an empty POST again by itself", Rule: "sent twice", Parent: "net/http: a request with a key counts as repeatable",
		Dir: door, Func: "NoResend", Package: door, Run: "TestNoResend_ConnectionBreaks_SendsOnce|TestNoResend_ReverseProxy_SendsOnce",
		Old: "r.Body, r.ContentLength = emptyBody{}, 0", New: "r.Body, r.ContentLength = http.NoBody, 0",
	},
	{
		Name: "each attempt has a key of its own", Rule: "rule 15",
		Dir: door, Func: "(*Transport).RoundTrip", Package: door, Run: "TestTransport_Attempts_SameKeyAndBytes",
		Old: "out.Header[t.opt.KeyHeader] = []string{key}",
		New: "out.Header[t.opt.KeyHeader] = []string{key[:1] + quoteKey(newUUID())[1:]}",
	},
	{
		Name: "a handler's request has a random key", Rule: "rule 15",
		Dir: door, Func: "(*Transport).keyOf", Package: door, Run: "TestTransport_KeySources_InOrder",
		Old: "insideHandler := semel.FromContext(r.Context()); insideHandler {",
		New: `insideHandler := semel.FromContext(r.Context()); insideHandler && key != "" {`,
	},
	{
		Name: "a key in another spelling gets a second one", Rule: "rule 15",
		Dir: door, Func: "keyLines", Package: door, Run: "TestTransport_KeyHeaderNotCanonical_SendsOneKey",
		Old: "strings.EqualFold(spelling, name) {", New: "spelling == name {",
	},
	{
		Name: "asking while the first request runs uses up the attempts", Rule: "http",
		Dir: door, Func: "(*Transport).RoundTrip", Package: door, Run: "TestTransport_FirstRequestRuns_AsksUntilItEnds",
		Old: "n--", New: "",
	},
	{
		Name: "half a body is sent as a whole one", Rule: "http",
		Dir: door, Func: "newBodies", Package: door, Run: "TestTransport_Bodies_AreRepeatable",
		Old: "if r.ContentLength > 0 && int64(len(b)) != r.ContentLength {", New: "if false {",
	},
	{
		Name: "a body that does not come outlives its context", Rule: "http",
		Dir: door, Func: "readAll", Package: door, Run: "TestTransport_BodyNeverComes_EndsWithContext",
		Old: "if ctx.Done() == nil {", New: "if ctx != nil {",
	},
	{
		Name: "the longest Retry-After is none", Rule: "http",
		Dir: "internal/httpname", Func: "ParseRetryAfter", Package: door, Run: "TestTransport_Answers_RetriedOrFinal",
		Old: "err == nil || errors.Is(err, strconv.ErrRange) {", New: "err == nil {",
	},
	{
		Name: "a client waits for the rest of a problem as long as it takes", Rule: "http",
		Dir: door, Func: "problemCode", Package: door, Run: "TestTransport_ProblemBodyStalls",
		Old: "time.NewTimer(maxTime)", New: "time.NewTimer(1000*maxTime)",
	},
	{
		Name: "the first attempt has empty trailers", Rule: "http",
		Dir: door, Func: "(*Transport).RoundTrip", Package: door, Run: "TestTransport_Trailers_SentWithEachAttempt",
		Old: "out.Trailer = r.Trailer", New: "",
	},
}
