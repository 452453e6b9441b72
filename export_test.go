package semel

// What the tests of this package see of its inside.
var CanonicalJSON = canonicalJSON
