package museum

// Section 3: equal keys of two scopes never meet.
var scopes = []Mutant{
	{
		Name: "the tenant is not part of the key", Rule: "scope", Parent: "M13: devlink#773, Truxify#2382",
		File: "call.go", Package: core, Run: "TestTwoScopesNeverMeet",
		Old: "Tenant: s.tenant, ", New: "",
	},
	{
		Name: "the operation is not part of the key", Rule: "scope", Parent: "M13: deepslate#104",
		File: "call.go", Package: core, Run: "TestTwoScopesNeverMeet",
		Old: "Operation: string(s.operation)", New: `Operation: "any"`,
	},
	{
		Name: "no tenant means a key space for all", Rule: "scope", Parent: "M13: idempo#29",
		File: "operation.go", Package: core, Run: "TestAnInvalidCall",
		Old: "if s.shared {", New: `if s.shared || s.tenant == "" {`,
	},
	{
		Name: "an operation may look like a child's", Rule: "scope",
		File: "operation.go", Package: core, Run: "TestAnInvalidCall",
		Old: `if strings.Contains(string(o), "#") {`, New: `if strings.Contains(string(o), "##") {`,
	},
	{
		Name: "a key has no limit", Rule: "scope",
		File: "operation.go", Package: core, Run: "TestAnInvalidCall",
		Old: "if len(v) > maxName {", New: "if len(v) > 2*maxName {",
	},
	{
		Name: "the fields of a key run into each other", Rule: "scope",
		File: "store/key.go", Package: seam, Run: "TestDigest",
		Old: "\t\tb = binary.BigEndian.AppendUint32(b, uint32(len(field)))\n", New: "\t\t_ = binary.BigEndian\n",
	},
	{
		Name: "keys of one place in their order have one id", Rule: "scope",
		File: "store/keyid.go", Package: seam, Run: "ID",
		Old: "id := [16]byte(d[:16])", New: "id := [16]byte{}\n\tcopy(id[:], d[:placeLen])",
	},
	{
		Name: "the id of a random key is a place", Rule: "scope",
		File: "store/keyid.go", Package: seam, Run: "ID",
		Old: "if '0' <= word[i] && word[i] <= '9' {", New: "if word[i] == 0 {",
	},
	{
		Name: "SQLite: of two keys with one id either answers", Rule: "scope",
		File: "store/sqlitestore/row.go", Package: lite, Run: "TestGet_RowOfAnotherKey_IsCorrupt",
		Old: "if err == nil && r.Key != key {", New: "if err == nil && r.Key.Operation != key.Operation {",
	},
}
