package semelhttp

import (
	"net/http"
	"testing"
)

// TestJudge_Table is the table of docs/http-answers.md.
func TestJudge_EachAnswer_HasEffect(t *testing.T) {
	nothing := map[int]bool{
		300: true, 301: true, 305: true, 307: true, 308: true, // elsewhere
		401: true, 402: true, 403: true, 407: true, 511: true, 419: true, 440: true, 498: true, // who asks, and who pays
		406: true, 411: true, 412: true, 415: true, 417: true, 426: true, 428: true, 431: true, // other headers
		408: true, 425: true, 429: true, // later
		421: true, 423: true, // another connection, a lock
	}
	again := map[int]bool{408: true, 425: true, 429: true, 502: true, 503: true, 504: true}
	for status := 200; status < 1000; status++ {
		want := Kept
		switch {
		case nothing[status]:
			want = NothingDone
		case status == 444 || status == 460 || status == 499 || status >= 500:
			want = Doubt
		}
		v := Judge(Answer{Status: status, Path: "/pay"})
		if v.Effect != want || v.Again != again[status] || v.Reason == "" || v.WithoutBody {
			t.Errorf("%d: %+v, want %v, again %v", status, v, want, again[status])
		}
	}
	to := func(location string) http.Header { return http.Header{"Location": {location}} }
	later := http.Header{"Retry-After": {"5"}}
	with := func(h http.Header, more ...string) http.Header {
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	unknown := func(more ...string) http.Header { return with(http.Header{"Semel-Outcome": {"unknown"}}, more...) }
	refusal := func(more ...string) http.Header { return with(http.Header{"Semel-Refusal": {"in_progress"}}, more...) }
	for name, c := range map[string]struct {
		a    Answer
		want Verdict // without its Reason
	}{
		"the handler has not begun":         {Answer{NotBegun: true, Ended: true}, Verdict{Effect: NothingDone, Again: true}},
		"silence, the context ended":        {Answer{Ended: true}, Verdict{Effect: Doubt, Again: true}},
		"silence":                           {Answer{}, Verdict{Effect: Doubt, Again: true}},
		"an answer after the context ended": {Answer{Status: 201, Ended: true}, Verdict{Effect: Kept}},
		"a broken body":                     {Answer{Status: 201, Broken: true}, Verdict{Effect: Doubt, Again: true}},
		"a broken refusal":                  {Answer{Status: 401, Broken: true}, Verdict{Effect: Doubt, Again: true}},
		"a broken stream":                   {Answer{Status: 200, Broken: true, Streamed: true}, Verdict{Effect: Kept, WithoutBody: true}},
		"a stream":                          {Answer{Status: 200, Streamed: true}, Verdict{Effect: Kept, WithoutBody: true}},
		"a stream with 500":                 {Answer{Status: 500, Streamed: true}, Verdict{Effect: Doubt}},
		"a short body":                      {Answer{Status: 200, Short: true}, Verdict{Effect: Kept, WithoutBody: true}},
		"404":                               {Answer{Status: 404}, Verdict{Effect: Kept}},
		"404, later":                        {Answer{Status: 404, Header: later}, Verdict{Effect: NothingDone, Again: true}},
		"409":                               {Answer{Status: 409}, Verdict{Effect: Kept}},
		"409, later":                        {Answer{Status: 409, Header: later}, Verdict{Effect: NothingDone, Again: true}},
		"409 of a service that parks":       {Answer{Status: 409, Header: unknown()}, Verdict{Effect: Doubt}},
		"200 of a service that parks":       {Answer{Status: 200, Header: unknown()}, Verdict{Effect: Doubt}},
		"401 of a service that parks":       {Answer{Status: 401, Header: unknown()}, Verdict{Effect: Doubt}},
		"409 that parks, later":             {Answer{Status: 409, Header: unknown("Retry-After", "5")}, Verdict{Effect: Doubt}},
		"302 that parks, to log in":         {Answer{Status: 302, Path: "/pay", Header: unknown("Location", "/login?next=/pay")}, Verdict{Effect: Doubt}},
		"200, not kept by the service":      {Answer{Status: 200, Header: http.Header{"Semel-Outcome": {"not-kept"}}}, Verdict{Effect: Kept, WithoutBody: true}},
		"422, refused by a Semel inside":    {Answer{Status: 422, Header: refusal()}, Verdict{Effect: NothingDone}},
		"409, refused by a Semel inside":    {Answer{Status: 409, Header: refusal("Retry-After", "5")}, Verdict{Effect: NothingDone, Again: true}},
		"409, refused because it is parked": {Answer{Status: 409, Header: refusal("Semel-Outcome", "unknown")}, Verdict{Effect: Doubt}},
		"502, refused by a Semel inside":    {Answer{Status: 502, Header: refusal()}, Verdict{Effect: Doubt, Again: true}},
		"201, a refusal's header passed on": {Answer{Status: 201, Header: refusal()}, Verdict{Effect: Kept}},
		"409, nonsense":                     {Answer{Status: 409, Header: http.Header{"Retry-After": {"soon"}}}, Verdict{Effect: Kept}},
		"499, later":                        {Answer{Status: 499, Header: later}, Verdict{Effect: Doubt}},
		"201, later":                        {Answer{Status: 201, Header: later}, Verdict{Effect: Kept}},
		"503, later":                        {Answer{Status: 503, Header: later}, Verdict{Effect: Doubt, Again: true}},
		"500, later":                        {Answer{Status: 500, Header: later}, Verdict{Effect: Doubt}},
		"302":                               {Answer{Status: 302, Path: "/pay", Header: to("/orders/7")}, Verdict{Effect: Kept}},
		"302 to its own path":               {Answer{Status: 302, Path: "/pay", Header: to("/pay")}, Verdict{Effect: Kept}},
		"302 to the log-in page":            {Answer{Status: 302, Path: "/pay", Header: to("/login?next=/pay")}, Verdict{Effect: NothingDone}},
		"302, escaped":                      {Answer{Status: 302, Path: "/pay", Header: to("https://id.example/auth?x=1&ReturnUrl=%2Fpay%3Fa%3D1#top")}, Verdict{Effect: NothingDone}},
		"302, an absolute URL":              {Answer{Status: 302, Path: "/pay", Header: to("/oauth2/start?rd=https%3A%2F%2Fshop.example%2Fpay")}, Verdict{Effect: NothingDone}},
		"303 to the log-in page":            {Answer{Status: 303, Path: "/pay", Header: to("/login?back=/pay")}, Verdict{Effect: NothingDone}},
		"302 after a registration":          {Answer{Status: 302, Path: "/register", Header: to("/login?welcome=1")}, Verdict{Effect: Kept}},
		"302 with a query that is not one":  {Answer{Status: 302, Path: "/pay", Header: to("/x?%zz=%zz&=%")}, Verdict{Effect: Kept}},
		"302, no path":                      {Answer{Status: 302, Header: to("/x?a=")}, Verdict{Effect: Kept}},
	} {
		v := Judge(c.a)
		if v.Reason == "" {
			t.Errorf("%s: no reason", name)
		}
		if v.Reason = ""; v != c.want {
			t.Errorf("%s: %+v, want %+v", name, v, c.want)
		}
	}
}
