package museum

// PostgreSQL, leased: each statement decides for itself.
var postgreses = []Mutant{}
