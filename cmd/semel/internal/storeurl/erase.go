package storeurl

// Remains says where bytes of erased records are after an erasure, and how to remove them.
// scrubbed says that store.Scrubber has done its work.
func (u URL) Remains(scrubbed bool) []string {
	switch u.kind {
	case inSQLite:
		if scrubbed {
			return []string{"copies of the file"}
		}
		return []string{"old pages in the file and its log: add --rewrite", "copies of the file"}
	case inPostgres:
		wal := "the write-ahead log (pg_wal), until the server has written over it, its archive, standbys that are behind, and backups"
		if scrubbed {
			return []string{wal}
		}
		return []string{"old versions of rows in the tables, and samples of values in the statistics: add --rewrite, while no service runs", wal}
	case inRedis:
		return []string{"the append-only file, until it is rewritten: redis-cli BGREWRITEAOF", "the last snapshot: redis-cli BGSAVE", "replicas that are behind, and backups"}
	case inDynamo:
		return []string{"point-in-time recovery (35 days), backups, exports and streams of the table"}
	}
	return nil
}

// Rewrites reports whether the store has files that store.Scrubber rewrites.
func (u URL) Rewrites() bool { return u.kind == inSQLite || u.kind == inPostgres }
