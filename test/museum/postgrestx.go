package museum

// PostgreSQL, Atomic: the record commits with the handler's writes, or neither does.
var postgresTxs = []Mutant{}
