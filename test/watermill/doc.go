// Package watermill tests semelwatermill with an Atomic of SQLite, and with a broker: consumer
// groups of Redis Streams, through Watermill's own publisher and subscriber. It has only
// tests, and is not a part of semelwatermill, so that users of that module need no client
// of Redis.
package watermill
