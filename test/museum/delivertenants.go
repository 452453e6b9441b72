package museum

// semel deliver sends the messages of many tenants to one service. A tenant with too many
// messages, or whose messages the service refuses for a while, must not stop those of others.
var tenantDeliveries = []Mutant{
	{
		Name: "deliver: a tenant has more requests at once than it may have", Rule: "limits",
		Dir: delivery, Func: "(*tenant).next", Package: delivery, Run: "TestTenants_Limit|TestServe_TenantIsBusy_OthersGoOn",
		Old: "tn.running < tn.owner.maxRequests", New: "true",
	},
	{
		Name: "deliver: a message that waits for its tenant keeps its place", Rule: "limits",
		Dir: delivery, Func: "(*sending).enter", Package: delivery, Run: "TestServe_TenantIsBusy_OthersGoOn",
		Old: "return t", New: "<-t.ready",
	},
	{
		Name: "deliver: the turn of a message that goes back to the broker is lost", Rule: "limits",
		Dir: delivery, Func: "(*turn).Leave", Package: delivery, Run: "TestTenants_Limit",
		Old: "tn.next()", New: "",
	},
	{
		Name: "deliver: tenants are remembered for ever", Rule: "limits",
		Dir: delivery, Func: "(*tenant).next", Package: delivery, Run: "TestTenants_PauseOfIdleTenant|TestTenants_Limit",
		Old: "tn.owner.all[tn.name] == tn", New: "false",
	},
	{
		Name: "deliver: 429 for one tenant stops all", Rule: "limits",
		Dir: delivery, Func: "(*sending).pause", Package: delivery, Run: "TestServe_AnswerAboutTenant_OthersGoOn",
		Old: "!v.tenant || s.turn == nil", New: "true",
	},
	{
		Name: "deliver: a service that has too much to do is asked for each tenant", Rule: "deliver",
		Dir: delivery, Func: "(*sending).pause", Package: delivery, Run: "TestServe_AnswerAboutTenant_OthersGoOn",
		Old: "!v.tenant || s.turn == nil", New: "s.turn == nil",
	},
	{
		Name: "deliver: messages that waited for a place are sent in the pause of their tenant", Rule: "deliver",
		Dir: delivery, Func: "(*sending).enter", Package: delivery, Run: "TestServe_TurnsFromBeforePause",
		Old: "s.turn == nil || !s.turn.outdated()", New: "true",
	},
	{
		Name: "deliver: a message that the hook let go claims in vain after it has waited for its tenant", Rule: "deliver",
		Dir: delivery, Func: "(*runner).Run", Package: delivery, Run: "TestServe_HookSaysNothingHappened_WaitsForTenant",
		Old: "r.forget(call)", New: "",
	},
	{
		Name: "a message that waits for its turn shows that the store answers", Rule: "rule 11",
		Dir: consumer, Func: "(*session).try", Package: consumer, Run: "TestOutage_TurnHasNotCome",
		Old: "if t.turn = t.disp.Turn(); t.turn != nil {", New: "if t.turn = t.disp.Turn(); false {",
	},
	{
		Name: "a message is tried again and again before its turn", Rule: "limits",
		Dir: consumer, Func: "(*session).hold", Package: consumer, Run: "TestServe_TurnsHaveNotCome",
		Old: "if t.turn != nil {", New: "if false {",
	},
	{
		Name: "messages that wait for their turn are taken without limit from a broker that counts deliveries", Rule: "limits",
		Dir: consumer, Func: "(*session).ended", Package: consumer, Run: "TestServe_BrokerLimitsDeliveries_TurnsTakeHandlers",
		Old: "t.turn == nil || s.info.DeliveryLimit == 0", New: "true",
	},
	{
		Name: "a message that is given back keeps its turn", Rule: "limits",
		Dir: consumer, Func: "(*task).prepareReturn", Package: consumer, Run: "TestServe_EndBeforeTurn",
		Old: "t.leaveTurn()", New: "",
	},
	{
		Name: "a handler that leaves by Goexit keeps its turn, and is tried again without a pause", Rule: "limits",
		Dir: consumer, Func: "(*session).tryInTurn", Package: consumer, Run: "TestServe_GoexitInTurn",
		Old: "defer t.leaveTurn() ctx = driver.WithTurn(ctx, t.turn) } return s.c.try(ctx, t)", New: "ctx = driver.WithTurn(ctx, t.turn) }; d := s.c.try(ctx, t); t.leaveTurn(); return d",
	},
	{
		Name: "a Serve that does not wait for its source keeps turns", Rule: "limits",
		Dir: consumer, Func: "(*session).notEnded", Package: consumer, Run: "TestServe_SourceDoesNotEnd",
		Old: "t.leaveTurn()", New: "_ = t",
	},
}
