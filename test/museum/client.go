package museum

// The HTTP client's side.
var clients = []Mutant{
	{
		Name: "net/http sends a POST again by itself", Rule: "sent twice", Parent: "net/http: a request with a key counts as repeatable",
		File: "semelhttp/noresend.go", Package: door, Run: "TestNoResendSendsOnce|TestAReverseProxy",
		Old: "\tr.GetBody = nil\n", New: "",
	},
	{
		Name: "net/http sends an empty POST again by itself", Rule: "sent twice", Parent: "net/http: a request with a key counts as repeatable",
		File: "semelhttp/noresend.go", Package: door, Run: "TestNoResendSendsOnce|TestAReverseProxy",
		Old: "r.Body, r.ContentLength = emptyBody{}, 0", New: "r.Body, r.ContentLength = http.NoBody, 0",
	},
	{
		Name: "each attempt has a key of its own", Rule: "rule 15",
		File: "semelhttp/transport.go", Package: door, Run: "TestAllAttemptsHaveOneKey",
		Old: "out.Header[t.opt.KeyHeader] = []string{key}", New: "out.Header[t.opt.KeyHeader] = []string{key[:1] + quoteKey(t.opt.NewKey())[1:]}",
	},
	{
		Name: "a handler's request has a random key", Rule: "rule 15",
		File: "semelhttp/clientkey.go", Package: door, Run: "TestWhereTheKeyComesFrom",
		Old: "inside := semel.FromContext(r.Context()); inside {", New: "inside := semel.FromContext(r.Context()); inside && key != \"\" {",
	},
	{
		Name: "half a body is sent as a whole one", Rule: "http",
		File: "semelhttp/resend.go", Package: door, Run: "TestBodiesAreMadeRepeatable",
		Old: "if r.ContentLength > 0 && int64(len(b)) != r.ContentLength {", New: "if false {",
	},
	{
		Name: "a body that does not come outlives its context", Rule: "http",
		File: "semelhttp/resend.go", Package: door, Run: "TestABodyThatDoesNotCome",
		Old: "if ctx.Done() == nil {", New: "if ctx != nil {",
	},
	{
		Name: "the longest Retry-After is none", Rule: "http",
		File: "semelhttp/backoff.go", Package: door, Run: "TestWhichAnswersAreTriedAgain",
		Old: "err == nil || errors.Is(err, strconv.ErrRange) {", New: "err == nil {",
	},
	{
		Name: "the first attempt has empty trailers", Rule: "http",
		File: "semelhttp/transport.go", Package: door, Run: "TestTrailersAreSentWithEachAttempt",
		Old: "\t\tout.Trailer = r.Trailer // the", New: "\t\t// the",
	},
}
