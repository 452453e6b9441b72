package museum

// Rule 12: the fingerprint is compared in every state. A call whose payload has an
// unknown secret is neither a mismatch nor run.
var fingerprints = []Mutant{
	{
		Name: "a call without effect binds its key", Rule: "rule 12", Parent: "curl --digest: the first request has no body",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestNoEffect_NothingHappenedBefore_FreesKeyForOtherPayload",
		Old: "s.Keep = 0", New: "",
	},
	{
		Name: "a call without effect frees its key after a doubtful one", Rule: "rule 12",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestNoEffect_AfterDoubt_KeyStaysBound|TestNoEffect_OfReservedCall_TokenHolds",
		Old: "if x.beginsLife && x.fingerprint != \"\" && !x.stepped.Load() {", New: "if !x.stepped.Load() {",
	},
	{
		Name: "a call without effect forgets its steps", Rule: "rule 12",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestNoEffect_HandlerAskedForStep_KeyStaysBound",
		Old: "&& !x.stepped.Load() {", New: "{",
	},
	{
		Name: "a claim that is given back binds its key", Rule: "rule 12",
		Dir: core, Func: "(*Guard).undoClaim", Package: core, Run: "TestClaim_GivenBack_FreesKeyForOtherPayload",
		Old: "s.Keep = 0", New: "",
	},
	{
		Name: "a claim that is given back frees its key after a doubtful one", Rule: "rule 12",
		Dir: core, Func: "(*Guard).undoClaim", Package: core, Run: "TestClaim_GivenBackAfterDoubt_KeyStaysBound",
		Old: "if beganLife(r) && ", New: "if ",
	},
	{
		Name: "HTTP: an event of another type under one key is a duplicate", Rule: "http",
		Dir: door, Func: "var defaultFingerprintHeaders", Package: door, Run: "TestPayload_HeadersThatChangeMeaning_AreCompared",
		Old: `"Ce-Type", `, New: "",
	},
	{
		Name: "HTTP: two routers below different prefixes share their answers", Rule: "rule 12",
		Dir: door, Func: "(*config).hashHead", Package: door, Run: "TestPayload_PathBelowStripPrefix_PrefixIsCompared",
		Old: `prefix != ""`, New: `prefix == "-"`,
	},
	{
		Name: "a part's head of megabytes is held several times", Rule: "limits",
		Dir: door, Func: "hashParts", Package: door, Run: "TestPayload_MultipartWithLongHead",
		Old: "in.left = maxPartHead", New: "in.left = -1",
	},
	{
		Name: "a part that is cut off in its head is not compared", Rule: "rule 12",
		Dir: door, Func: "hashParts", Package: door, Run: "TestPayload_MultipartEndsEarly",
		Old: `io.MultiReader(start, strings.NewReader(nl+"x"+nl))`, New: `io.MultiReader(start, strings.NewReader(nl[:0]))`,
	},
	{
		Name: "a multipart body with bare line feeds is compared with its boundary", Rule: "rule 12",
		Dir: door, Func: "hashParts", Package: door, Run: "TestPayload_MultipartWithLineFeeds",
		Old: "lineEnd(seen, boundary)", New: `lineEnd(seen[:0], boundary)`,
	},
	unchecked("Started", ""),
	unchecked("Processing", "M6: powertools-typescript#2058, powertools-java#2260"),
	unchecked("Released", ""),
	unchecked("Completed", "M6: powertools-typescript#2058"),
	unchecked("Failed", ""),
	unchecked("Unknown", ""),
	{
		Name: "a digest may have the name under which each payload matches", Rule: "rule 12",
		Dir: core, Func: "Digest", Package: core, Run: "TestDigest_AlgAndSum_AreCompared",
		Old: "|| alg == store.AnyPayload", New: "",
	},
	{
		Name: "strings that are not UTF-8 are equal payloads", Rule: "rule 12",
		Dir: core, Func: "JSON", Package: core, Run: "TestJSON_StringsNotUTF8_StayApart",
		Old: "parts: invalid", New: "parts: nil",
	},
	{
		Name: "the fingerprint is not checked on a lapsed claim", Rule: "rule 12", Parent: "M6: powertools-java#2260",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_FingerprintDiffers_RefusedInEachState",
		Old: "if !hasToken && r.Fingerprint.Alg != AnyPayload {", New: "if !hasToken && !r.Lapsed(now) {",
	},
	{
		Name: "an unknown secret is a mismatch", Rule: "rule 12",
		Dir: seam, Func: "Decide", Package: core, Run: "TestSecrets_Rotated_OldRecordsAreCompared",
		Old: "d.Action = Unverifiable", New: "d.Action = Mismatch",
	},
	{
		Name: "a payload with an unknown secret is not compared", Rule: "rule 12",
		Dir: seam, Func: "Decide", Package: core, Run: "TestSecrets_Rotated_OldRecordsAreCompared",
		Old: "d.Action = Unverifiable", New: "d.Action, d.Until = byState(r, c, d.Policy, now)",
	},
	{
		Name: "the parts of a payload run into each other", Rule: "rule 12",
		Dir: core, Func: "(*Payload).appendTo", Package: core, Run: "TestBytes_CutDifferently_Differ|FuzzFingerprint",
		Old: "b = append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)", New: "b = append(b, part...)",
	},
	{
		Name: "the parts of a long payload run into each other", Rule: "rule 12",
		Dir: core, Func: "(*Payload).sum", Package: core, Run: "TestBytes_ShortOrLongKeyedOrNot_PartsStayApart",
		Old: "h.Write(binary.BigEndian.AppendUint64(buf, uint64(len(part))))", New: "_ = buf",
	},
	{
		Name: "two ways of hashing have one name", Rule: "rule 12",
		Dir: core, Func: "var kindJSON", Package: core, Run: "TestPayload_OtherKind_IsUnverifiable",
		Old: `"rfc8785/sha256"`, New: `"bytes/sha256"`,
	},
	{
		Name: "the secret does not key the hash", Rule: "rule 12", Parent: "MCPJam#4469",
		Dir: core, Func: "(*Payload).fingerprint", Package: core, Run: "TestSecrets_OtherKey_OtherHash",
		Old: "hmac.New(sha256.New, s.Key)", New: "hmac.New(sha256.New, nil)",
	},
	{
		Name: "a secret hides that the request came over HTTP", Rule: "rule 12",
		Dir: core, Func: "(*Payload).fingerprint", Package: core, Run: "TestSecrets_Digest_RecordKeepsItsName",
		Old: `alg = p.label + "/" + alg`, New: "_ = p.label",
	},
	{
		Name: "the zero Secret hashes as if it were one", Rule: "rule 12",
		Dir: core, Func: "(*Guard).fingerprint", Package: core, Run: "TestSecrets_FirstOneTurnedOnInSteps_EachProcessComparesAll",
		Old: `|| g.options.Secrets[0].ID == ""`, New: "",
	},
	{
		Name: "the id of the secret is not kept", Rule: "rule 12",
		Dir: core, Func: "(*Payload).fingerprint", Package: core, Run: "TestSecrets_Rotated_OldRecordsAreCompared",
		Old: "KeyID: s.ID,", New: "",
	},
	{
		Name: "only the newest secret is read", Rule: "rule 12",
		Dir: core, Func: "(*pendingCall).decide", Package: core, Run: "TestSecrets_Rotated_OldRecordsAreCompared|TestSecrets_Added_UnkeyedRecordsAreCompared",
		Old: "if s, ok := c.guard.secret(r.Fingerprint.KeyID); ok {",
		New: "if s, ok := c.guard.secret(r.Fingerprint.KeyID); ok && s == nil {",
	},
	{
		Name: "the payload is not hashed at all", Rule: "rule 12",
		Dir: core, Func: "(*Guard).newPendingCall", Package: core, Run: "TestPayload_Differs_IsMismatchInEveryState",
		Old: "c.storeCall.Fingerprint = g.fingerprint(&call.Payload)", New: "_ = g.fingerprint(&call.Payload)",
	},
	{
		Name: "the run of a token loses the fingerprint", Rule: "rule 12",
		Dir: core, Func: "(*pendingCall).nextClaim", Package: core, Run: "TestRedeem_TokenDeliveredOften_RunsOnce",
		Old: "p.Policy, p.Fingerprint, p.Attempt, p.Error = d.Policy, r.Fingerprint, r.Attempt+1, r.LastError",
		New: "p.Policy, p.Attempt, p.Error = d.Policy, r.Attempt+1, r.LastError",
	},
	{
		Name: "parking loses the fingerprint", Rule: "rule 12",
		Dir: core, Func: "(*Guard).change", Package: core, Run: "TestPayload_ParkedOrResolved_StaysCompared",
		Old: "Fingerprint: r.Fingerprint,", New: "",
	},
	{
		Name: "a JSON object may have a member twice", Rule: "rule 12",
		Dir: "internal/jsontext", Func: "(*reader).object", Package: "internal/jsontext", Run: "TestCanonical_NotJSON",
		Old: "if o[i].name == o[i-1].name {", New: "if false {",
	},
	{
		Name: "an escape in JSON is compared as it is written", Rule: "rule 12",
		Dir: "internal/jsontext", Func: "(*reader).text", Package: "internal/jsontext", Run: "TestCanonical_SameMeaning",
		Old: "if !escaped {", New: "if !escaped || true {",
	},
	{
		Name: "long numbers are compared as doubles", Rule: "rule 12",
		Dir: "internal/jsontext", Func: "appendNumber", Package: "internal/jsontext", Run: "TestCanonical_OtherMeaning",
		Old: "rounded == d", New: "rounded.negative == d.negative",
	},
	{
		Name: "a long number is not brought into one form", Rule: "rule 12",
		Dir: "internal/jsontext", Func: "appendNumber", Package: "internal/jsontext", Run: "TestCanonical_SameMeaning|FuzzCanonical",
		Old: "return d.append(b), nil", New: "return append(b, n...), nil",
	},
	{
		Name: "half a surrogate pair equals another half", Rule: "rule 12",
		Dir: "internal/jsontext", Func: "parse", Package: "internal/jsontext", Run: "TestCanonical_NotJSON",
		Old: "checkSurrogates(doc)", New: "checkSurrogates(nil)",
	},
	{
		Name: "an absent member equals null", Rule: "rule 12",
		Dir: "internal/jsontext", Func: "Fields", Package: "internal/jsontext", Run: "TestFields_NamedMembers",
		Old: "var value []byte", New: `value := []byte("null")`,
	},
}

// unchecked skips the fingerprint in one state.
func unchecked(state, parent string) Mutant {
	return Mutant{
		Name: "the fingerprint is not checked in state " + state, Rule: "rule 12", Parent: parent,
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_FingerprintDiffers_RefusedInEachState",
		Old: "if !hasToken && r.Fingerprint.Alg != AnyPayload {", New: "if !hasToken && r.State != " + state + " {",
	}
}
