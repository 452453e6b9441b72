package museum

// What stands between a client and a service in another language must not make
// two effects of one request, nor take for an answer what is none.
var sidecars = []Mutant{
	{
		Name: "an answer that waits for its place before the store is not stored", Rule: "limits",
		Dir: sidecar, Func: "pacedStore.acquire", Package: sidecar, Run: "TestPacedStore_NoPlaceInTime",
		Old: "wait = min(wait, time.Until(end)/4)", New: "wait = time.Until(end)",
	},
	{
		Name: "a client that hangs up writes a warning about the store", Rule: "limits",
		Dir: sidecar, Func: "byStranger", Package: sidecar, Run: "TestRefuse_ClientHangsUp",
		Old: "return hungUp ||", New: "return hungUp && r == nil ||",
	},
	{
		Name: "a look-alike of a protected name with an underscore passes", Rule: "scope",
		Dir: sidecar, Func: "(*router).ambiguous", Package: sidecar, Run: "TestHeader_HyphenLooksProtected",
		Old: "d.lookalikes[plain] && !d.protected[name]", New: "d.lookalikes == nil",
	},
	{
		Name: "the authorizer is not told the tenant in a name with an underscore", Rule: "scope",
		Dir: hooks, Func: "(*Hook).lookalike", Package: sidecar, Run: "TestAuthorize_TenantInHeaderWithUnderscore",
		Old: "(own || !h.protected[name])", New: "(own || h != nil)",
	},
	{
		Name: "a body that waits for its turn at a stop is malformed", Rule: "rule 11",
		Dir: sidecar, Func: "keyFrom", Package: sidecar, Run: "TestKeyFrom_StopWhileWaiting",
		Old: `fmt.Errorf("%w: %w", semel.ErrUnavailable, err)`, New: "err",
	},
	{
		Name: "a record and the log quote a part of an answer", Rule: "http",
		Dir: upstream, Func: "(*Upstream).onFailure", Package: upstream, Run: "TestFailure_AnswerNotUnderstood",
		Old: "input.WithoutQuotes(err)", New: "err",
	},
	{
		Name: "clients that do not read their replays fill the memory", Rule: "limits",
		Dir: limits, Func: "(*Visit).Hold", Package: sidecar, Run: "TestReplay_ClientsDoNotRead",
		Old: "v.held += n", New: "n = 0",
	},
	{
		Name: "a tenant that is over its limit is refused as fast as it sends", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).refuse", Package: sidecar, Run: "TestLimits_TenantRefused",
		Old: "!p.pause(r)", New: "false",
	},
	{
		Name: "the proxy writes a refusal that nobody reads", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).refuse", Package: sidecar, Run: "TestLimits_RefusedClientEnds",
		Old: "panic(http.ErrAbortHandler)", New: "_ = http.ErrAbortHandler",
	},
	{
		Name: "refused requests take the places of other tenants", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).pause", Package: sidecar, Run: "TestLimits_TenantRefused",
		Old: "limit.FromContext(r.Context()).EndUnadmitted()", New: "_ = limit.FromContext(r.Context())",
	},
	{
		Name: "a client that hangs up keeps its connection until its refusal", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).pause", Package: sidecar, Run: "TestPause_ClientHangsUp",
		Old: "_, _ = io.CopyN(io.Discard, r.Body, smallBody)", New: "_ = io.Discard",
	},
	{
		Name: "the body of a refused request counts until a restart", Rule: "limits",
		Dir: limits, Func: "(*Visit).Spool", Package: limits, Run: "TestSpool_VisitEnded",
		Old: "v == nil || v.ended", New: "v == nil",
	},
	{
		Name: "a body that is discarded before a refusal is refused again", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).pause", Package: sidecar, Run: "TestLimits_RefusalsPause",
		Old: "b.visit = nil", New: "_ = b.visit",
	},
	{
		Name: "a flood of refusals writes a warning for each", Rule: "limits",
		Dir: limits, Func: "(*flood).refusal", Package: limits, Run: "TestRefusal_First",
		Old: "f.last.Swap(n)", New: "f.last.Load()",
	},
	{
		Name: "a flood that goes on for a minute is warned of again", Rule: "limits",
		Dir: limits, Func: "(*flood).refusal", Package: limits, Run: "TestRefusal_First",
		Old: "return n-f.last.Swap(n) > int64(time.Minute)",
		New: `
			last := f.last.Load()
			return n-last > int64(time.Minute) && f.last.CompareAndSwap(last, n)`,
	},
	{
		Name: "the log names no tenant that is refused", Rule: "limits",
		Dir: limits, Func: "(*Visit).Admit", Package: sidecar, Run: "TestLimits_TenantFloods_LogNamesItOnce",
		Old: "v.tenant = tenant", New: "",
	},
	{
		Name: "the log shows a tenant that is hashed in the store", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).loggedTenant", Package: sidecar, Run: "TestHashKeys_LimitRefuses",
		Old: ".Hashed(p.HashKeys)", New: "",
	},
	{
		Name: "the body of a request that waits for its refusal does not count", Rule: "limits",
		Dir: limits, Func: "(*Visit).EndUnadmitted", Package: limits, Run: "TestEndUnadmitted",
		Old: "v != nil && v.account == nil", New: "v != nil",
	},
	{
		Name: "that no answer came is kept as the answer", Rule: "doubt",
		Dir: upstream, Func: "(*Upstream).onFailure", Package: sidecar, Run: "TestKeep5xx_NoAnswer_StaysInDoubt",
		Old: "level := slog.LevelWarn",
		New: `
			if a, ok := r.Context().Value(answersKey{}).(*Answers); ok && a.Keep5xx {
				semelhttp.Final(r)
			}
			level := slog.LevelWarn`,
	},
	{
		Name: "the redirect to a log-in page below the upstream's path is kept", Rule: "http",
		Dir: upstream, Func: "(*Upstream).onAnswer", Package: sidecar, Run: "TestLoginRedirect_UpstreamHasPath",
		Old: "v.Effect == semelhttp.NothingDone", New: "false",
	},
	{
		Name: "the proxy hides that the service does not know the outcome", Rule: "doubt",
		Dir: upstream, Func: "(*Upstream).onAnswer", Package: sidecar, Run: "TestOutcomeUnknown_OfService",
		Old: "res.Header.Set(outcomeHeader, outcome)", New: "",
	},
	{
		Name: "a stop does not end the wait for the rest of a body", Rule: "http",
		Dir: sidecar, Func: "(*timedBody).Read", Package: sidecar, Run: "TestServe_StopDuringBody",
		Old: "_ = b.conn.SetReadDeadline(time.Now())", New: "",
	},
	{
		Name: "a list of statuses makes the refusal of another Semel a result", Rule: "doubt",
		Dir: upstream, Func: "(*Answers).mark", Package: sidecar, Run: "TestNested",
		Old: "case IsRefusal(res.StatusCode, res.Header):", New: "case false:",
	},
	{
		Name: "a header that a service passes on hides its result", Rule: "rule 8",
		Dir: upstream, Func: "refusalIn", Package: sidecar, Run: "TestNested_ResultWithRefusalHeader",
		Old: "status < http.StatusBadRequest", New: "status < http.StatusOK",
	},
	{
		Name: "half an answer is sent, and the log says that the handler panicked", Rule: "doubt",
		Dir: upstream, Func: "(*Upstream).forward", Package: upstream, Run: "TestAnswer_BodyBreaksOff_IsDoubt",
		Old: "if p != http.ErrAbortHandler || !semelhttp.Broken(r) {", New: "if p != nil {",
	},
	{
		Name: "a redirect leads past the proxy", Rule: "http",
		Dir: upstream, Func: "(*Upstream).onAnswer", Package: upstream, Run: "TestLocation_NamesUpstream_IsRenamed",
		Old: "u.renameLocation(res)", New: "",
	},
	{
		Name: "a stop does not give claims back", Rule: "rule 9",
		Dir: upstream, Func: "(*Upstream).Handler", Package: upstream, Run: "TestStop_RequestsInFlight_AreGivenUp",
		Old: "defer context.AfterFunc(u.stopped, cancel)()", New: "",
	},
	{
		Name: "another spelling of a path evades its rule", Rule: "policy",
		Dir: sidecar, Func: "(*router).strictest", Package: sidecar, Run: "TestRules_OtherSpellingOfPath_IsNotWeaker|TestRules_TwoWithOneNormalForm_StricterApplies",
		Old: "if d.variants == nil {", New: "if d.variants != nil {",
	},
	{
		Name: "another spelling of a path gets a weaker rule", Rule: "policy",
		Dir: sidecar, Func: "(*router).strictest", Package: sidecar, Run: "TestRules_VariantOfWeakerRule_KeepsItsOwn",
		Old: "gain > 0 || gain == 0 && !found.specific", New: "gain != 0 || !found.specific",
	},
	{
		Name: "a protected GET is sent twice", Rule: "sent twice",
		Dir: upstream, Func: "(*Upstream).rewrite", Package: sidecar, Run: "TestProtectedGet_ConnectionBreaks_SentOnce",
		Old: "preventResend(pr.Out)", New: "",
	},
	{
		Name: "trailers of a request are lost", Rule: "http",
		Dir: upstream, Func: "(*Upstream).rewrite", Package: upstream, Run: "TestRequestTrailers_ReachUpstream",
		Old: "u.trailers(pr)", New: "",
	},
	{
		Name: "a trailer is a header that decides", Rule: "scope",
		Dir: upstream, Func: "(*Upstream).trailerAllowed", Package: sidecar, Run: "TestTrailer_ProtectedName_Dropped",
		Old: "&& !u.protected[name]", New: "",
	},
	{
		Name: "what was sent on an earlier connection does not count", Rule: "rule 9",
		Dir: upstream, Func: "(*transmission).gotConn", Package: upstream, Run: "TestNotSent_SentOnEarlierConnection_False",
		Old: `
				s.doubt = true
			}
			if s.conn, _ = c.(*conn)`,
		New: `
			}
			if s.conn, _ = c.(*conn)`,
	},
	{
		Name: "a path without its last slash is of no rule", Rule: "policy",
		Dir: sidecar, Func: "(*router).find", Package: sidecar, Run: "TestRules_PathWithoutFinalSlash|TestRules_RootRule",
		Old: "h, _ = d.subtrees.Handler(&dir)", New: "h = d.rest",
	},
	{
		Name: "a host in capitals is of no rule", Rule: "policy",
		Dir: sidecar, Func: "plainHost", Package: sidecar, Run: "TestRule_HostInCapitalsOrWithDot_Applies",
		Old: "host = config.Host(host); host == r.Host {", New: `host = config.Host(host); host != "" {`,
	},
	{
		Name: "the proxy's secrets key nothing", Rule: "rule 12",
		Dir: sidecar, Func: "(*Proxy).options", Package: sidecar, Run: "TestSecrets_Rotated_OldStillCompares",
		Old: ", Secrets: secrets,", New: ",",
	},
	{
		Name: "the proxy takes another secret under an ID that it has used", Rule: "rule 12",
		Dir: sidecar, Func: "(*Proxy).reloadSecrets", Package: sidecar, Run: "TestSecrets_FileChanges_UsedWithoutRestart",
		Old: "if err == nil {\n\t\t\terr = used.Add", New: "if false {\n\t\t\terr = used.Add",
	},
	{
		Name: "a file of secrets that could not be read is not read again", Rule: "rule 12",
		Dir: sidecar, Func: "(*Proxy).reloadSecrets", Package: sidecar, Run: "TestSecrets_SameTimeAndSize_ReadAgain",
		Old: "failed = err.Error()", New: "return",
	},
	{
		Name: "half a secret is used", Rule: "rule 12",
		Dir: "cmd/semel/internal/secrets", Func: "Reread", Package: "cmd/semel/internal/secrets", Run: "TestReread_HalfWrittenLine_NotTaken",
		Old: "changed && !ended", New: "false && !ended",
	},
	{
		Name: "a reconciler is asked about another tenant", Rule: "rule 17",
		Dir: hooks, Func: "(*Hook).Reconcile", Package: hooks, Run: "TestReconcile_KeyNotUTF8_NotAsked",
		Old: "if !utf8.ValidString(v) {", New: "if false && !utf8.ValidString(v) {",
	},
	{
		Name: "a tunnel of HTTP/2 passes by every rule", Rule: "policy",
		Dir: sidecar, Func: "(*router).ServeHTTP", Package: sidecar, Run: "TestUpgrade_H2COffered_Ignored",
		Old: "d.ignoreUpgrade(r.Header)", New: "",
	},
	{
		Name: "a client uses a key that the proxy makes", Rule: "scope",
		Dir: sidecar, Func: "(*router).problemOf", Package: sidecar, Run: "TestKey_ReservedPrefix_Refused",
		Old: "case d.reserved(r.Header):", New: "case d.reserved(http.Header{}):",
	},
	{
		Name: "a tenant is trimmed more than the service trims it", Rule: "scope",
		Dir: "cmd/semel/internal/scope", Func: "one", Package: sidecar, Run: "TestTenant_OtherSpace_IsAnotherTenant",
		Old: `strings.Trim(values[0], " \t")`, New: "strings.TrimSpace(values[0])",
	},
	{
		Name: "different invalid texts have one key", Rule: "scope",
		Dir: sidecar, Func: "scalar", Package: sidecar, Run: "TestKeyFrom_InvalidText_Refused",
		Old: "strings.ContainsRune(v, utf8.RuneError)", New: `strings.ContainsRune(v, utf8.RuneError) && v == ""`,
	},
	{
		Name: "any peer names its tenant", Rule: "scope",
		Dir: sidecar, Func: "(*router).unforwardable", Package: sidecar, Run: "TestPeer_NotTrusted_403",
		Old: "case !d.peers.allow(r):", New: "case false && !d.peers.allow(r):",
	},
	{
		Name: "a background verdict expires before its rule says", Rule: "rule 7",
		Dir: sidecar, Func: "mergedByOperation", Package: sidecar, Run: "TestReconcileRound_RuleKeepsLonger",
		Old: "max(m.Retention, r.Retention)", New: "m.Retention",
	},
	{
		Name: "a hook's answer is kept in spite of no-store", Rule: "http",
		Dir: sidecar, Func: "(*Proxy).options", Package: sidecar, Run: "TestReconcile_NoStore",
		Old: "if r.NoStore {", New: "if false {",
	},
	{
		Name: "a background verdict keeps an answer in spite of no-store", Rule: "http",
		Dir: sidecar, Func: "mergedByOperation", Package: sidecar, Run: "TestReconcile_NoStore",
		Old: "m.NoStore || r.NoStore", New: "m.NoStore",
	},
	{
		Name: "the proxy hides that the service has not kept its answer", Rule: "rule 10",
		Dir: upstream, Func: "innerOutcome", Package: sidecar, Run: "TestOutcomeNotKept_OfService",
		Old: "case v == outcomeNotKept, v == outcomeUnknown", New: "case v == outcomeUnknown",
	},
	{
		Name: "a header with underscores replaces a method that passes", Rule: "policy",
		Dir: sidecar, Func: "protectedNames", Package: sidecar, Run: "TestMethodOverride_Underscores",
		Old: "httpname.OverrideHeaders(), ", New: "httpname.OverrideHeaders()[:0], ",
	},
	{
		Name: "answers that are not kept pass by the limit of bytes", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).countAnswer", Package: sidecar, Run: "TestLimits_AnswersNotKeptAndReplays",
		Old: "v.Keep(c.written)", New: "v.Keep(0)",
	},
	{
		Name: "an empty list of gateways trusts all peers", Rule: "scope",
		Dir: "cmd/semel/internal/config", Func: "(*resolver).empty", Package: "cmd/semel/internal/config", Run: "TestResolve_OutOfRange",
		Old: "v.Type().Elem().Kind() == reflect.String", New: "v.Type().Elem().Kind() == reflect.Int",
	},
	{
		Name: "files for TLS are taken for traffic in clear", Rule: "http",
		Dir: "cmd/semel/internal/config", Func: "(*resolver).inClear", Package: "cmd/semel/internal/config", Run: "TestResolve_OutOfRange",
		Old: `u.Scheme == "https"`, New: `u.Scheme != ""`,
	},
}
