package proctest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports that FreePort chooses from. They are below the ports that the
// system gives to programs that do not ask for a certain one (32768 and up on
// Linux), so no other program is given the port of a server that is down.
const firstPort, lastPort = 10000, 31999

// FreePort is a port of the loopback interface that no process listens on.
// With offsets, the ports at these distances above it are free, too.
func FreePort(offsets ...int) (int, error) {
	highest := 0
	for _, o := range offsets {
		highest = max(highest, o)
	}
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-highest-firstPort+1)
		if err = listenOnce(port); err != nil {
			continue
		}
		for _, o := range offsets {
			if err == nil {
				err = listenOnce(port + o)
			}
		}
		if err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("proctest: no free port found between %d and %d: %w", firstPort, lastPort, err)
}

func listenOnce(port int) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return err
	}
	return l.Close()
}
