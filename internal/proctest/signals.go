package proctest

import (
	"os"
	"os/signal"
	"syscall"
)

// PassSignals makes the processes that a test starts begin with SIGINT and SIGHUP as a shell
// has them. Under nohup, or in the background of a script, a test has them ignored, and its
// processes would inherit that. Call it in TestMain.
func PassSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
