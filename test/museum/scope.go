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
		Old: `if strings.Contains(string(s.operation), "#") {`, New: `if strings.Contains(string(s.operation), "##") {`,
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
}
