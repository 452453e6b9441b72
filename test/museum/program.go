package museum

const (
	tenants  = "cmd/semel/internal/scope"
	adminDir = "cmd/semel/internal/admin"
	loginDir = "cmd/semel/internal/login"
)

// A program must not end in the middle of its work, nor let a stranger hold up or mislead the
// people who use it.
var programs = []Mutant{
	{
		Name: "program: the end of the reader of the log ends the program", Rule: "signals",
		Dir: program, Func: "HandleSignals", Package: program, Run: "TestHandleSignals_ReaderOfLogGone",
		Old: "signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)", New: "",
	},
	{
		Name: "program: a terminal that is closed ends the program at once", Rule: "signals",
		Dir: program, Func: "HandleSignals", Package: program, Run: "TestHandleSignals_OneOrManyHangups",
		Old: "signal.Ignored(syscall.SIGHUP)", New: "!signal.Ignored(syscall.SIGUSR1)",
	},
	{
		Name: "program: nohup does not keep a program from ending", Rule: "signals",
		Dir: program, Func: "HandleSignals", Package: program, Run: "TestHandleSignals_Nohup",
		Old: "signal.Ignored(syscall.SIGHUP)", New: "signal.Ignored(syscall.SIGUSR1)",
	},
	{
		Name: "program: tokens of strangers wait for a slow key set in the places of all tenants", Rule: "limits",
		Dir: tenants, Func: "(*KeySet).again", Package: tenants, Run: "TestKeySet_SlowFetch",
		Old: "time.NewTimer(wait)", New: "time.NewTimer(wait + time.Hour)",
	},
	{
		Name: "program: a client without a log-in holds a connection of the console", Rule: "limits",
		Dir: adminDir, Func: "limitBodies", Package: adminDir, Run: "TestServer_BodyDoesNotCome",
		Old: "r.Body != http.NoBody", New: "r.ContentLength == 0",
	},
	{
		Name: "program: the time of a log-in tells which users there are", Rule: "console",
		Dir: loginDir, Func: "(*passwords).match", Package: loginDir, Run: "TestHandler_WrongPassword_Time",
		Old: "hash = p.standIn(users, user)", New: `hash = []byte("$2a$10$7EqJtq98hPqEX7fNZaFWoOhi5Ao.d7H0s4pcZ6vBd2PlB9lB1Oe3y")`,
	},
	{
		Name: "program: a password that was changed still opens the console", Rule: "console",
		Dir: loginDir, Func: "(*passwords).mark", Package: loginDir, Run: "TestHandler_PasswordChanged",
		Old: "h.Write(hash)", New: "",
	},
	{
		Name: "program: a request without a key is not counted if its method is in small letters", Rule: "http",
		Dir: sidecar, Func: "(*Proxy).countWithoutKey", Package: sidecar, Run: "TestWithoutKey_OddSpellings",
		Old: "to.protects(q)", New: "to.protects(q) && q.Method == http.MethodPost",
	},
	{
		Name: "program: a client's key hides the call whose hash it is", Rule: "console",
		Dir: "cmd/semel/internal/cli", Func: "look", Package: "cmd/semel/internal/cli", Run: "TestInspectGet_HashIsAlsoAKey",
		Old: `given.Operation == ""`, New: `given.Operation == "-"`,
	},
	{
		Name: "program: another site can name itself a user of the console", Rule: "console",
		Dir: loginDir, Func: "(*Login).Handler", Package: loginDir, Run: "TestByHeader_OnlyByLocalNames",
		Old: "!isLocalName(r.Host) && !slices", New: `r.Host == "-" && !slices`,
	},
	{
		Name: "program: a credential names the operator", Rule: "console",
		Dir: "cmd/semel/internal/input", Func: "UnfitHeader", Package: "cmd/semel/internal/cli", Run: "TestConsole",
		Old: `"Authorization", `, New: "",
	},
	{
		Name: "program: claims that are no Unicode are one tenant", Rule: "scope",
		Dir: tenants, Func: "text", Package: tenants, Run: "TestTenant_ClaimsThatAreNoUnicode",
		Old: "strings.ContainsRune(s, utf8.RuneError)", New: `strings.ContainsRune(s, ' ')`,
	},
	{
		Name: "program: a key that was withdrawn while no token came is accepted once more", Rule: "scope",
		Dir: tenants, Func: "(*KeySet).find", Package: tenants, Run: "TestKeySet_KeyWithdrawnWhileIdle",
		Old: "now.Sub(st.tried) >= s.maxAge+s.opt.Pause", New: "now.Sub(st.tried) >= 1000*s.maxAge",
	},
	{
		Name: "program: while the issuer cannot be reached, a token of a new key is the client's fault", Rule: "http",
		Dir: tenants, Func: "(*KeySet).find", Package: tenants, Run: "TestKeySet_IssuerDown_LoggedAndUnknownKey",
		Old: "len(found) == 0 && st.err != nil", New: "len(found) == 0 && st.loaded.IsZero()",
	},
	{
		Name: "program: a request that no key can have is refused for want of a tenant", Rule: "http",
		Dir: sidecar, Func: "(*router).searches", Package: sidecar, Run: "TestKeyFrom_RequestWithoutKey_Passes",
		Old: "!d.scope.Absent(r) && ", New: "",
	},
	{
		Name: "program: a body with a key that only the service can read passes unprotected", Rule: "http",
		Dir: sidecar, Func: "keyFrom", Package: sidecar, Run: "TestKeyFrom_NoObject_NoKey",
		Old: "errors.Is(err, errNotJSON) && hasOtherType(r)", New: "errors.Is(err, errNotJSON)",
	},
	{
		Name: "program: the authorizer does not learn the tenant", Rule: "http",
		Dir: hooks, Func: "(*Hook).asked", Package: sidecar, Run: "TestAuthorize_TenantInForwardedHeader",
		Old: "(!h.protected[name] || slices.Contains(ownForwarded, name))", New: "(!h.trust || slices.Contains(ownForwarded, name))",
	},
	{
		Name: "program: a body without a key may come a byte at a time for ever", Rule: "limits",
		Dir: upstream, Func: "(*answerTimer).Read", Package: upstream, Run: "TestUpload_Trickle",
		Old: "left < b.limit && !b.stopped", New: "left < b.limit && b.stopped",
	},
}
