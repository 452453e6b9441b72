package museum

const tenants = "cmd/semel/internal/scope"

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
		Old: "default: return errFetching", New: "case <-ctx.Done(): return errFetching",
	},
	{
		Name: "program: claims that are no Unicode are one tenant", Rule: "scope",
		Dir: tenants, Func: "text", Package: tenants, Run: "TestTenant_ClaimsThatAreNoUnicode",
		Old: "strings.ContainsRune(s, utf8.RuneError)", New: `strings.ContainsRune(s, ' ')`,
	},
}
