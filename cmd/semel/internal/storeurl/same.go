package storeurl

import "os"

// Same reports whether two URLs name one store, as far as that can be seen without a
// connection: the same URL, or names of one SQLite file.
func (u URL) Same(o URL) bool {
	if u.Secret() == o.Secret() {
		return true
	}
	if u.kind != inSQLite || o.kind != inSQLite {
		return false
	}
	a, aerr := os.Stat(u.text)
	b, berr := os.Stat(o.text)
	return aerr == nil && berr == nil && os.SameFile(a, b)
}
