package museum

// Scope: equal keys of two operations or tenants are different calls.
var scopes = []Mutant{
	{
		Name: "the tenant is not part of the key", Rule: "scope", Parent: "M13: devlink#773, Truxify#2382",
		Dir: core, Func: "(*Call).storeKey", Package: core, Run: "TestRun_OtherOperationOrTenant_IsAnotherCall",
		Old: "Tenant: c.Tenant,", New: "",
	},
	{
		Name: "the operation is not part of the key", Rule: "scope", Parent: "M13: deepslate#104",
		Dir: core, Func: "(*Call).storeKey", Package: core, Run: "TestRun_OtherOperationOrTenant_IsAnotherCall",
		Old: "Operation: c.Operation", New: `Operation: "any"`,
	},
	{
		Name: "a call without a tenant is shared", Rule: "scope", Parent: "M13: idempo#29",
		Dir: core, Func: "(*Call).check", Package: core, Run: "TestRun_InvalidCall_NamesFieldAndLimit",
		Old: `if c.Tenant == "" { return errors.New("tenant: is empty; name the account or user, or say semel.Shared") } if c.Tenant != Shared {`,
		New: `if c.Tenant == Shared+Shared { return errors.New("tenant: is twice shared") }; if c.Tenant != "" && c.Tenant != Shared {`,
	},
	{
		Name: "an operation may look like the operation of a step", Rule: "scope",
		Dir: "internal/names", Func: "CheckOperation", Package: core, Run: "TestRun_InvalidCall_NamesFieldAndLimit",
		Old: `strings.Contains(operation, "#")`, New: `strings.Contains(operation, "##")`,
	},
	{
		Name: "a key has no limit", Rule: "scope",
		Dir: "internal/names", Func: "Check", Package: core, Run: "TestRun_InvalidCall_NamesFieldAndLimit",
		Old: "if len(value) > Max {", New: "if len(value) > 2*Max {",
	},
	{
		Name: "the fields of a key run into each other", Rule: "scope",
		Dir: seam, Func: "Key.Digest", Package: seam, Run: "TestDigest",
		Old: "b = binary.BigEndian.AppendUint32(b, uint32(len(field)))", New: "_ = binary.BigEndian",
	},
	{
		Name: "keys with the same position have the same ID", Rule: "scope",
		Dir: seam, Func: "Key.ID", Package: seam, Run: "ID",
		Old: "id := [16]byte(d[:16])",
		New: `
			id := [16]byte{}
			copy(id[:], d[:positionLen])`,
	},
	{
		Name: "the ID of a random key begins with a position", Rule: "scope",
		Dir: seam, Func: "numberOf", Package: seam, Run: "ID",
		Old: "if '0' <= word[i] && word[i] <= '9' {", New: "if word[i] == 0 {",
	},
	{
		Name: "SQLite: of two keys with one id either answers", Rule: "scope",
		Dir: lite, Func: "(*row).recordOf", Package: lite, Run: "TestGet_RowOfAnotherKey_IsCorrupt",
		Old: "if err == nil && r.Key != key {", New: "if err == nil && r.Key.Operation != key.Operation {",
	},
}
