package museum

// Adapters of web frameworks: each sends a part of an answer after its middleware has
// returned, where semelhttp does not see it.
var frameworks = []Mutant{
	{
		Name: "Gin: a status without a body is sent after the handler", Rule: "http",
		Dir: "semelhttp/semelgin", Func: "(*writer).finish", Package: "semelhttp/semelgin", Run: "TestMiddleware_EachAnswer",
		Old: "if w.statusSet {", New: "if w.statusSet && false {",
	},
	{
		Name: "Gin: a replay runs the rest of the chain", Rule: "rule 8",
		Dir: "semelhttp/semelgin", Func: "Middleware", Package: "semelhttp/semelgin", Run: "TestMiddleware_Replay",
		Old: "c.Abort()", New: "_ = c",
	},
	{
		Name: "Gin: a repeated transaction keeps an answer although the chain has not run again", Rule: "atomic",
		Dir: "semelhttp/semelgin", Func: "runChain", Package: "semelhttp/semelgin", Run: "TestMiddleware_EachAnswer",
		Old: "semelhttp.NoEffect(r)", New: "semelhttp.Final(r)",
	},
	{
		Name: "Gin: half an answer is kept", Rule: "doubt",
		Dir: "semelhttp/semelgin", Func: "(*writer).ReadFrom", Package: "semelhttp/semelgin", Run: "TestMiddleware_AnswerBreaksOff",
		Old: "w.broken || err != nil &&", New: "w.broken || err != nil && false &&",
	},
	{
		Name: "Gin: half a page is kept", Rule: "doubt",
		Dir: "semelhttp/semelgin", Func: "hasTemplateError", Package: "semelhttp/semelgin", Run: "TestMiddleware_AnswerBreaksOff",
		Old: "return ok", New: "return false && ok",
	},
	{
		Name: "Gin: the status of a renderer that failed is kept without its body", Rule: "doubt",
		Dir: "semelhttp/semelgin", Func: "(*writer).lacksBody", Package: "semelhttp/semelgin", Run: "TestMiddleware_RendererFails",
		Old: "return w.statusSet &&", New: "return false &&",
	},
	{
		Name: "Gin: a renderer that failed is in doubt although nothing was done", Rule: "doubt",
		Dir: "semelhttp/semelgin", Func: "runChain", Package: "semelhttp/semelgin", Run: "TestMiddleware_RendererFails",
		Old: "&& !semelhttp.Marked(r)", New: "",
	},
	{
		Name: "Gin: an error that is noted is a failed renderer, if an outer middleware sets the type", Rule: "http",
		Dir: "semelhttp/semelgin", Func: "(*writer).lacksBody", Package: "semelhttp/semelgin", Run: "TestMiddleware_OuterTypeAndNotedError_IsSilence",
		Old: "return w.statusSet &&", New: "return",
	},
	{
		Name: "Fiber: a repeated transaction keeps an answer although the chain has not run again", Rule: "atomic",
		Dir: "semelhttp/semelfiber", Func: "runChain", Package: "semelhttp/semelfiber", Run: "TestMiddleware_EachAnswer",
		Old: "semelhttp.NoEffect(r)", New: "semelhttp.Final(r)",
	},
	{
		Name: "Fiber: a form is compared in the order of a map", Rule: "rule 12",
		Dir: "semelhttp/semelfiber", Func: "bodyOf", Package: "semelhttp/semelfiber", Run: "TestMiddleware_FormPreParsed",
		Old: "case isPreParsed(c):", New: "case false:",
	},
	{
		Name: "Fiber: half a streamed request runs", Rule: "http",
		Dir: "semelhttp/semelfiber", Func: "(*streamBody).Read", Package: "semelhttp/semelfiber", Run: "TestMiddleware_RequestCutShort",
		Old: "b.left > 0 &&", New: "false &&",
	},
	{
		Name: "Fiber: half a request in streamed chunks runs", Rule: "http",
		Dir: "semelhttp/semelfiber", Func: "bodyOf", Package: "semelhttp/semelfiber", Run: "TestMiddleware_RequestCutShort",
		Old: "case declared < 0:", New: "case false:",
	},
	{
		Name: "Fiber: half a stream is kept as a whole one", Rule: "doubt",
		Dir: "semelhttp/semelfiber", Func: "writeBody", Package: "semelhttp/semelfiber", Run: "TestMiddleware_StreamHasOtherLength",
		Old: "n != declared", New: "n < 0",
	},
	{
		Name: "Echo: an error becomes an answer after the handler", Rule: "http", Parent: "an empty 200 is kept and replayed",
		Dir: "semelhttp/semelecho", Func: "runHandler", Package: "semelhttp/semelecho", Run: "TestMiddleware_HandlerReturnsError",
		Old: "x.c.Echo().HTTPErrorHandler(x.c, err)", New: "w.WriteHeader(200)\nx.err = err",
	},
	{
		Name: "Echo: half an answer is kept although the handler returned an error", Rule: "doubt",
		Dir: "semelhttp/semelecho", Func: "runHandler", Package: "semelhttp/semelecho", Run: "TestMiddleware_ErrorAfterAnswer",
		Old: "&& semelhttp.Broken(r)", New: "&& false",
	},
	{
		Name: "Echo: an error after the answer takes back what the handler said of it", Rule: "rule 8",
		Dir: "semelhttp/semelecho", Func: "runHandler", Package: "semelhttp/semelecho", Run: "TestMiddleware_ErrorAfterMarkedAnswer",
		Old: "&& !semelhttp.Marked(r)", New: "",
	},
	{
		Name: "Echo: a 204 with a body, which the server drops, is in doubt", Rule: "rule 8",
		Dir: "semelhttp/semelecho", Func: "runHandler", Package: "semelhttp/semelecho", Run: "TestMiddleware_StatusAllowsNoBody",
		Old: "!bodyless &&", New: "(!bodyless || bodyless) &&",
	},
	{
		Name: "Fiber: a protected request with a path that cannot be compared runs", Rule: "rule 12",
		Dir: "semelhttp/semelfiber", Func: "newRequest", Package: "semelhttp/semelfiber", Run: "TestMiddleware_OddPath",
		Old: "x.uriErr = err", New: "_ = err",
	},
	{
		Name: "Fiber: an error becomes an answer after the handler", Rule: "http", Parent: "an empty 200 is kept and replayed",
		Dir: "semelhttp/semelfiber", Func: "runChain", Package: "semelhttp/semelfiber", Run: "TestMiddleware_HandlerReturnsError",
		Old: "if c.App().ErrorHandler(c, err) != nil {", New: "w.WriteHeader(200)\nx.err = err\nif err == nil {",
	},
}
