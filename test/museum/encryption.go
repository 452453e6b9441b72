package museum

const encryption = "store/encrypted"

// What is encrypted is refused in any place but its own, and what cannot be read counts
// as existing.
var encryptions = []Mutant{
	{
		Name: "encryption: a ciphertext fits each key", Rule: "encrypted",
		Dir: encryption, Func: "place.additionalData", Package: encryption, Run: "TestGet_CiphertextOfAnotherPlace_Refused",
		Old: "p.key.Tenant, p.key.Value, p.name", New: "p.key.Tenant, p.name",
	},
	{
		Name: "encryption: the fields of a place run together", Rule: "encrypted",
		Dir: encryption, Func: "place.additionalData", Package: encryption, Run: "TestGet_CiphertextOfAnotherPlace_Refused",
		Old: "binary.AppendUvarint(b, uint64(len(field)))", New: "binary.AppendUvarint(b, 0)[:len(b)]",
	},
	{
		Name: "encryption: a step is accepted as a result", Rule: "encrypted",
		Dir: encryption, Func: "place.additionalData", Package: encryption, Run: "TestSteps_MadeOfResult_Refused",
		Old: "append(make([]byte, 0, 128), p.kind)", New: "append(make([]byte, 0, 128), p.kind*0)",
	},
	{
		Name: "encryption: a result of an earlier claim is accepted", Rule: "encrypted",
		Dir: encryption, Func: "outcomePlaceOf", Package: encryption, Run: "TestGet_ResultOfEarlierClaim_Refused",
		Old: "string(owner[:])", New: "string(owner[:0])",
	},
	{
		Name: "encryption: a failure can be made a success", Rule: "encrypted",
		Dir: encryption, Func: "outcomePlaceOf", Package: encryption, Run: "TestGet_AnyByteOfResultChanged_Refused",
		Old: "[]byte{byte(state)}", New: "[]byte{byte(state) * 0}",
	},
	{
		Name: "encryption: all texts have one nonce", Rule: "encrypted",
		Dir: encryption, Func: "(*Cipher).seal", Package: encryption, Run: "TestSettle_SameResult_EachNonceIsNew",
		Old: "return aead.Seal(b, nil, plain, p.additionalData(b)), nil",
		New: `
			block, err := aes.NewCipher(key)
			if err != nil {
				return nil, err
			}
			gcm, err := cipher.NewGCM(block)
			if err != nil {
				return nil, err
			}
			nonce := make([]byte, gcm.NonceSize())
			return gcm.Seal(append(b, nonce...), nonce, plain, p.additionalData(b)), nil`,
	},
	{
		Name: "encryption: a record whose key is not known counts as absent", Rule: "rule 11",
		Dir: encryption, Func: "(*Cipher).open", Package: core, Run: "TestEncryption_Unreadable_ErrorAndNoSecondRun",
		Old: `
			case errors.Is(err, ErrUnknownKey):
				return nil, refused(p, "%w", err)`,
		New: `
			case errors.Is(err, ErrUnknownKey):
				return nil, store.ErrNotFound`,
	},
	{
		Name: "encryption: a result in the clear is accepted although it must be encrypted", Rule: "encrypted",
		Dir: encryption, Func: "(*Cipher).openStep", Package: encryption, Run: "TestGet_InTheClear_ReadUnlessRefused",
		Old: "if c.RequireEncrypted {", New: "if c.RequireEncrypted && p.kind == 0 {",
	},
	{
		Name: "encryption: a tombstone without a ciphertext is corrupt", Rule: "rule 10",
		Dir: encryption, Func: "(*Cipher).openOutcome", Package: dynamo, Run: "TestEncryption_ObjectNotThere_IsNotKept",
		Old: "r.State == store.Completed && o.Equal", New: "false && o.Equal",
	},
	{
		Name: "encryption: a tombstone in the clear is accepted although it must be encrypted", Rule: "encrypted",
		Dir: encryption, Func: "(*Cipher).openOutcome", Package: encryption, Run: "TestGet_TombstoneInPlaceOfResult_DoneAndNothingElse",
		Old: "Code: o.Code, Codec: Codec, Gone: true", New: "Code: o.Code, Codec: o.Codec, Gone: true",
	},
	{
		Name: "encryption: a tombstone makes a failure of a result", Rule: "encrypted",
		Dir: encryption, Func: "(*Cipher).openOutcome", Package: encryption, Run: "TestGet_TombstoneInPlaceOfResult_DoneAndNothingElse",
		Old: "r.State == store.Completed && o.Equal", New: "r.State.Terminal() && o.Equal",
	},
	{
		Name: "encryption: a tombstone brings headers along", Rule: "encrypted",
		Dir: encryption, Func: "(*Cipher).openOutcome", Package: encryption, Run: "TestGet_TombstoneInPlaceOfResult_DoneAndNothingElse",
		Old: "o.Equal(store.Outcome{Code: o.Code, Codec: Codec, Gone: true})", New: "o.Gone && o.Codec == Codec && len(o.Body) == 0",
	},
	{
		Name: "encryption: what stands beside a ciphertext may be changed", Rule: "encrypted",
		Dir: encryption, Func: "(*Cipher).openStep", Package: encryption, Run: "TestSteps_AnyByteOfStepChanged_Refused",
		Old: "sealed.Failed != s.Failed || ", New: "",
	},
	{
		Name: "encryption: a handler begins whose result cannot be stored", Rule: "rule 9",
		Dir: encryption, Func: "(*Cipher).proposal", Package: encryption, Run: "TestClaim_NoKey_NotSent",
		Old: "if p.State == store.Started || p.State == store.Processing {", New: "if p.State.Terminal() {",
	},
	{
		Name: "encryption: a settlement that is sent again is another one", Rule: "rule 4",
		Dir: encryption, Func: "(*encryptedStore).Settle", Package: core, Run: "TestEncryption_SettlementSentAgain_IsTheSame",
		Old: "if !errors.Is(lost, store.ErrLeaseLost) || !plain.State.Terminal() {", New: "if errors.Is(lost, store.ErrLeaseLost) || lost == nil || !plain.State.Terminal() {",
	},
	{
		Name: "encryption: a settlement that is sent again in a transaction is another one", Rule: "rule 4",
		Dir: encryption, Func: "(*encryptedTx).Settle", Package: lite, Run: "TestConformance_Encrypted",
		Old: "t.lease, t.plain, t.sealed = l, s, sealed", New: "t.sealed = sealed",
	},
	{
		Name: "encryption: a step that is sent again is another one", Rule: "steps",
		Dir: encryption, Func: "journal.RecordStep", Package: encryption, Run: "TestConformance",
		Old: "if steps[i].Equal(&plain) {", New: "if steps[i].Equal(&s) {",
	},
	{
		Name: "encryption: the error of a key file shows the line", Rule: "encrypted",
		Dir: encryption, Func: "(*KeyFile).read", Package: encryption, Run: "TestReadKeyFile_Unfit_ErrorNamesLineAndNoKey",
		Old: `"encrypted: %q: line %d: %s", f.path, n, fmt.Sprintf(why, args...)`, New: `"encrypted: %q: line %d: %s: %s", f.path, n, fmt.Sprintf(why, args...), line`,
	},
	{
		Name: "encryption: another key is taken under an ID that was used", Rule: "encrypted",
		Dir: encryption, Func: "(*KeyFile).read", Package: encryption, Run: "TestKeyFile_IDWithAnotherKey_LastKeysStay",
		Old: "ok && !bytes.Equal(old, key)", New: "ok && len(old) != len(key)",
	},
	{
		Name: "encryption: the keys that have left the file are forgotten", Rule: "encrypted",
		Dir: encryption, Func: "(*KeyFile).setKeys", Package: encryption, Run: "TestKeyFile_IDWithAnotherKey_LastKeysStay",
		Old: "maps.Copy(f.keysSinceStart, keys)", New: "f.keysSinceStart = maps.Clone(keys)",
	},
	{
		Name: "encryption: a key file that could not be read is not read again", Rule: "encrypted",
		Dir: encryption, Func: "(*KeyFile).refresh", Package: encryption, Run: "TestKeyFile_UnreadableThenMended_IsReadAgain",
		Old: "f.failed = err.Error()", New: "f.failed, f.lastRead = err.Error(), now.Add(time.Hour)",
	},
	{
		Name: "encryption: a new order of the keys goes unseen", Rule: "encrypted",
		Dir: encryption, Func: "(*KeyFile).refresh", Package: encryption, Run: "TestKeyFile_LinesSwappedWithinOneTime_IsReadAgain",
		Old: "slices.Equal(ids, f.ids) && ", New: "",
	},
	{
		Name: "encryption: a transaction is in the clear", Rule: "encrypted",
		Dir: core, Func: "(*Guard).runIn", Package: core, Run: "TestRunIn_Encryption_RecordIsEncrypted",
		Old: "tx = g.options.Encryption.Tx(tx)", New: "",
	},
	{
		Name: "encryption: a batch whose records are inserted first is in the clear", Rule: "encrypted",
		Dir: core, Func: "(*driverTxCall).Inserted", Package: core, Run: "TestRunIn_Encryption_RecordIsEncrypted",
		Old: "t.tx = t.guard.options.Encryption.Tx(tx)", New: "t.tx = tx",
	},
	{
		Name: "encryption: an outage of the key service repeats effects", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).noteAnswer", Package: core, Run: "TestEncryption_KeyServiceDown_NoUnprotectedRun",
		Old: "|| f.Record.Key == c.key ||", New: "||",
	},
	{
		Name: "encryption: a Guard without keys returns the ciphertext", Rule: "encrypted",
		Dir: core, Func: "(*pendingCall).answer", Package: core, Run: "TestEncryption_Unreadable_ErrorAndNoSecondRun",
		Old: "d.Action == store.Replay || d.Action == store.ReplayFailure", New: "d.Action == store.ReplayFailure",
	},
	{
		Name: "encryption: the record of a failed attempt is in the clear", Rule: "encrypted",
		Dir: postgres, Func: "NewAtomic", Package: postgres, Run: "TestAtomic_Encryption_NothingInTheClear",
		Old: "o.Encryption.Store(outside)", New: "outside",
	},
	{
		Name: "encryption: all tenants have one key", Rule: "encrypted",
		Dir: encryption, Func: "(*Cipher).current", Package: encryption, Run: "TestTenantKeys_KeyThrownAway_ResultsUnreadableAndOthersGoOn",
		Old: "keys.TenantCurrent(ctx, tenant)", New: `keys.TenantCurrent(ctx, "")`,
	},
	{
		Name: "encryption: without a key for new results, calls that have a result run again", Rule: "rule 11",
		Dir: encryption, Func: "(*encryptedStore).Claim", Package: core, Run: "TestEncryption_NoKeyToEncryptWith_NoUnprotectedRunOfRecordedCall",
		Old: "f.Record.Key == p.Key &&", New: "false &&",
	},
	{
		Name: "encryption: without a key for new results, calls whose record cannot be read run again", Rule: "rule 11",
		Dir: encryption, Func: "(*encryptedStore).Claim", Package: core, Run: "TestEncryption_NoKeyToEncryptWithAndUnreadableRecord_NoUnprotectedRun",
		Old: "errors.Is(err, store.ErrCorrupt) ||", New: "",
	},
	{
		Name: "encryption: a tenant that was forgotten counts as an outage", Rule: "encrypted",
		Dir: core, Func: "(*pendingCall).noteAnswer", Package: core, Run: "TestEncryption_NoKeyToEncryptWith_NoUnprotectedRunOfRecordedCall|TestUnprotected_RefusedAloneThenNoAnswer",
		Old: "|| errors.Is(err, encrypted.ErrUnknownKey)", New: "",
	},
	{
		Name: "encryption: without a key, a claim whose reply was lost looks like another's", Rule: "rule 2",
		Dir: encryption, Func: "(*encryptedStore).Claim", Package: encryption, Run: "TestClaim_NoKey_NotSent",
		Old: "&& f.Record.Owner != p.Owner", New: "",
	},
}
