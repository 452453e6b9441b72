package museum

// DynamoDB: a large outcome is an object, and its record refers to it.
var dynamoObjects = []Mutant{
	{
		Name: "DynamoDB: an object is written after the record", Rule: "rule 8",
		Dir: dynamo, Func: "(*Store).packOutcome", Package: dynamo, Run: "TestObjects_Settle_ObjectIsWrittenBeforeRecord",
		Old: "if err = s.opt.Objects.Put(ctx, name, body); err != nil {",
		New: `
			put, late := s.opt.Objects.Put, context.WithoutCancel(ctx)
			time.AfterFunc(50*time.Millisecond, func() { _ = put(late, name, body) })
			if err = error(nil); err != nil {`,
	},
	{
		Name: "DynamoDB: the checksum of an object is not compared", Rule: "rule 8",
		Dir: dynamo, Func: "(*Store).fetchOutcome", Package: dynamo, Run: "TestObjects_MissingOrDamaged_DoneAndNotKept",
		Old: "case sha256.Sum256(body) != sum:", New: "case len(body) == 0:",
	},
	{
		Name: "DynamoDB: two runs share an object", Rule: "rule 8",
		Dir: dynamo, Func: "objectName", Package: dynamo, Run: "TestObjects_EarlierRunsObjectExpires_LaterOneStays",
		Old: "fence, hex", New: "0*fence, hex",
	},
	{
		Name: "DynamoDB: a settlement that is refused writes over the object", Rule: "rule 8",
		Dir: dynamo, Func: "objectName", Package: dynamo, Run: "TestObjects_OtherSettlementAfterwards_OutcomeStays",
		Old: "hex.EncodeToString(sum[:])", New: "hex.EncodeToString(sum[:0])",
	},
	{
		Name: "DynamoDB: a missing object is an absent record", Rule: "rule 11",
		Dir: dynamo, Func: "(*Store).fetchOutcome", Package: dynamo, Run: "TestObjects_MissingOrDamaged_DoneAndNotKept",
		Old: "case errors.Is(err, fs.ErrNotExist):", New: "case errors.Is(err, fs.ErrNotExist):\nreturn store.ErrNotFound\ncase false:",
	},
	{
		Name: "DynamoDB: an outage of S3 hides the record, so that a duplicate runs without one", Rule: "rule 11",
		Dir: dynamo, Func: "(*Store).existing", Package: dynamo, Run: "TestObjects_NoAnswer_ErrorShowsRecordWithoutOutcome",
		Old: "return store.Found{Record: r, Now: now}, err", New: "return store.Found{}, err",
	},
	{
		Name: "DynamoDB: an outage of S3 turns an answer into a tombstone", Rule: "rule 8",
		Dir: dynamo, Func: "(*Store).fetchOutcome", Package: dynamo, Run: "TestObjects_NoAnswer_ErrorShowsRecordWithoutOutcome",
		Old: "r.Outcome = store.Outcome{}", New: "",
	},
	{
		Name: "DynamoDB: an error of S3 is taken for an answer of the table", Rule: "rule 11",
		Dir: dynamo, Func: "objectsFailed", Package: dynamo, Run: "TestObjects_NoAnswerToReplay_ErrorThenOutcome",
		Old: `"%w: %s %s: %v"`, New: `"%w: %s %s: %w"`,
	},
	{
		Name: "DynamoDB: an outage of S3 leaves no record of an effect", Rule: "rule 10",
		Dir: dynamo, Func: "(*Store).packSettled", Package: dynamo, Run: "TestObjects_NoAnswerToSettlement_TombstoneAndNoSecondRun",
		Old: "if errors.Is(err, errObjects) && ctx.Err() == nil {", New: "if false {",
	},
	{
		Name: "DynamoDB: a settlement that is sent again during an outage of S3 is another one", Rule: "rule 4",
		Dir: dynamo, Func: "(*Store).settle", Package: dynamo, Run: "TestObjects_NoAnswerToSettlementSentAgain_IsSettled",
		Old: "errors.Is(err, errObjects) && s.isSettled", New: "false && s.isSettled",
	},
	{
		Name: "DynamoDB: an encrypted settlement that is sent again during an outage of S3 is another one", Rule: "rule 4",
		Dir: dynamo, Func: "(*Store).isSettled", Package: dynamo, Run: "TestObjects_SettlementSentAgainDuringOutage_CallerGetsOutcome",
		Old: "sameTombstone(", New: "sameOutcome(",
	},
	{
		Name: "DynamoDB: during an outage of S3 the settlement of another owner counts", Rule: "rule 4",
		Dir: dynamo, Func: "(*Store).isSettled", Package: dynamo, Run: "TestObjects_NoAnswerToSettlementSentAgain_IsSettled",
		Old: "r.Lease() == *l &&", New: "",
	},
	{
		Name: "DynamoDB: an outage of S3 makes a tombstone of a copied answer", Rule: "moved",
		Dir: dynamo, Func: "(*Store).receive", Package: dynamo, Run: "TestObjects_NoAnswerToCopy_NothingStoredThenWhole",
		Old: "s.packOutcome(ctx, r)", New: "s.packSettled(ctx, r)",
	},
	{
		Name: "DynamoDB: an object that hangs leaves no time for a tombstone", Rule: "rule 10",
		Dir: dynamo, Func: "(*Store).packSettled", Package: dynamo, Run: "TestObjects_NoAnswerToSettlement_TombstoneAndNoSecondRun",
		Old: "time.Until(end)/2", New: "time.Until(end)",
	},
	{
		Name: "DynamoDB: a transaction loses its result when S3 fails", Rule: "atomic",
		Dir: dynamo, Func: "(*Tx).Settle", Package: dynamo, Run: "TestObjects_Atomic_WrittenBeforeCommitOrRefused",
		Old: "outcome, err := t.store.packOutcome(ctx, &r)", New: "outcome, err := t.store.packSettled(ctx, &r)",
	},
	{
		Name: "DynamoDB: a list asks a bucket that is down for each object", Rule: "rule 11",
		Dir: dynamo, Func: "(*Store).List", Package: dynamo, Run: "TestList_ObjectsFail_EndsWithError",
		Old: " && errors.Is(err, store.ErrCorrupt)", New: "",
	},
}
