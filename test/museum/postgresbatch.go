package museum

// PostgreSQL, batches: many messages in a transaction, each with an end of its own.
var postgresBatches = []Mutant{}
