package museum

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
}
