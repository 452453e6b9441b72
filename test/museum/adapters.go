package museum

// Adapters of brokers: each has its own ways to lose a message, or to hand it out twice.
var adapters = []Mutant{}
