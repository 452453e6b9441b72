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
	{
		Name: "two topics share the keys of a field", Rule: "scope",
		Dir: consumer, Func: "eventPrefix", Package: consumer, Run: "TestKey_SameBodyOnTwoTopics_DoesNotCollide",
		Old: "digest(\"\", []byte(address), []byte(event))", New: "digest(\"\", []byte(event))",
	},
	{
		Name: "an event of another topic is a duplicate", Rule: "scope",
		Dir: consumer, Func: "Payload", Package: consumer, Run: "TestKey_SameBodyOnTwoTopics_DoesNotCollide",
		Old: "[]byte(driver.Address(m)), ", New: "",
	},
	{
		Name: "two types of events share the keys of a field", Rule: "scope",
		Dir: consumer, Func: "eventPrefix", Package: consumer, Run: "TestKey_SameBodyOfTwoTypes_DoesNotCollide",
		Old: "[]byte(address), []byte(event)", New: "[]byte(address)",
	},
	{
		Name: "an event of another type is a duplicate", Rule: "scope",
		Dir: consumer, Func: "Payload", Package: consumer, Run: "TestKey_SameBodyOfTwoTypes_DoesNotCollide",
		Old: "[]byte(driver.EventType(m.Headers)), ", New: "",
	},
	{
		Name: "the order in which a broker gives the headers is part of the key", Rule: "scope",
		Dir: consumer + "/driver", Func: "EventType", Package: consumer, Run: "TestKey_HeadersOfARedelivery_DoNotCount",
		Old: "slices.Sort(parts)", New: "",
	},
	{
		Name: "tombstones of two records are duplicates", Rule: "scope",
		Dir: consumer, Func: "Hash", Package: consumer, Run: "TestKey_SameBodyOfTwoRecordKeys_DoesNotCollide",
		Old: "len(key) > 0", New: "len(key) < 0",
	},
	{
		Name: "a record with another key is a duplicate", Rule: "scope",
		Dir: consumer, Func: "Payload", Package: consumer, Run: "TestKey_SameBodyOfTwoRecordKeys_DoesNotCollide",
		Old: "driver.RecordKey(m), ", New: "",
	},
	{
		Name: "a letter that is sent back has another record key", Rule: "scope",
		Dir: consumer + "/driver", Func: "RecordKey", Package: consumer, Run: "TestKey_LetterIsSentBack_KeepsItsIdentity",
		Old: "!redriven {", New: "!redriven || true {",
	},
	{
		Name: "deliver: a tenant with a space is another tenant, and the service cannot tell", Rule: "scope",
		Dir: delivery, Func: "(*Calls).Call", Package: delivery, Run: "TestServe_ScopeHeaderHasSpace_IsTheTenantThatTheServiceGets",
		Old: `strings.Trim(tenant, " \t")`, New: `strings.Trim(tenant, "")`,
	},
	{
		Name: "deliver: an event of another type is a duplicate", Rule: "scope",
		Dir: delivery, Func: "(*Calls).Call", Package: delivery, Run: "TestCall_TypeOrRecordKeyDiffers_IsMismatch",
		Old: "consume.Payload(m)", New: "semel.Bytes(m.Body)",
	},
	{
		Name: "a client makes operations without end", Rule: "limits",
		Dir: door, Func: "route", Package: door, Run: "TestRoute_MethodsWithoutEnd",
		Old: `method = "OTHER"`, New: "_ = method",
	},
}
