package museum

// What is around a store or a hook: settings of the server, poolers, a later schema, the
// verdict of an operator, and the headers of a client.
var environments = []Mutant{
	{
		Name: "PostgreSQL: the text formats of the application's connections are not pinned", Rule: "settings",
		Dir: postgres + "/internal/pgwire", Func: "PinFormats", Package: postgres, Run: "TestStore_OddSettings_WorksAsUsual",
		Old: "pin(cfg, formatSettings)", New: "pin(cfg, nil)",
	},
	{
		Name: "PostgreSQL: a pooler that shares prepared statements is not noticed at the first start", Rule: "settings",
		Dir: postgres + "/internal/pgwire", Func: "CheckPrepared", Package: postgres, Run: "TestCheckPrepared_PoolerShares_FirstPoolRefused",
		Old: "err != nil || !isPooled {", New: "err != nil || isPooled {",
	},
	{
		Name: "PostgreSQL: a process refuses each later schema", Rule: "settings",
		Dir: "store/pgstore/internal/schema", Func: "Schema.number", Package: postgres, Run: "TestOpen_LaterAdditiveMigration_Works",
		Old: "number > latest && compatible > latest", New: "number > latest && compatible > 0",
	},
	{
		Name: "SQLite: a process refuses each later schema", Rule: "settings",
		Dir: lite, Func: "schema", Package: lite, Run: "TestOpen_LaterAdditiveMigration_Works",
		Old: "version > latest && compatible > latest", New: "version > latest && compatible > 0",
	},
	{
		Name: "inspect resolve: an answer that no caller can read is accepted", Rule: "rule 17",
		Dir: "cmd/semel/internal/cli", Func: "(*inspectResolveCmd).checkShape", Package: "cmd/semel/internal/cli", Run: "TestInspectResolve_CallOfDo_NeedsItsCodec",
		Old: "case c.Status != 0 && !isHTTP(r) && !c.HTTP:", New: "case c.Status < 0 && !isHTTP(r) && !c.HTTP:",
	},
	{
		Name: "a hook gets the client's conditions", Rule: "http",
		Dir: hooks, Func: "(*Hook).asked", Package: hooks, Run: "TestAuthorize_ConditionsAndLookalikes_NotSent",
		Old: `strings.HasPrefix(name, "Semel-"), strings.HasPrefix(name, "If-"),`, New: `strings.HasPrefix(name, "Semel-"),`,
	},
	{
		Name: "a hook gets the client's Range", Rule: "http",
		Dir: hooks, Func: "(*Hook).asked", Package: hooks, Run: "TestAuthorize_ConditionsAndLookalikes_NotSent",
		Old: `"Forwarded", "Range"}`, New: `"Forwarded"}`,
	},
}
