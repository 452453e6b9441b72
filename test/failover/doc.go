// Package failover fails a PostgreSQL server over to its synchronous standby while
// calls wait for the standby, and checks that nothing that was acknowledged is lost.
//
// In each round the connection to the standby is cut, calls run into deadlines and
// connection resets, and somebody cancels the server's waits. Then the primary is
// killed and the standby is promoted. The oracle counts the runs of the handlers in
// memory, and the effects in tables that know nothing of Semel.
package failover
