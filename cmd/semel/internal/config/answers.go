package config

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/semel-go/semel/internal/httpname"
)

// Compared selects the headers that duplicates must have in common, the headers of an
// answer that are kept, and the pages that may read the proxy's own answers. Nil: not
// set.
type Compared struct {
	FingerprintHeaders *[]string `yaml:"fingerprint-headers" name:"fingerprint-headers" placeholder:"NAME,…" group:"Answers" help:"Request headers that must be equal in all requests with one key; Host is the host name (default: Host, Content-Encoding, If-Match, X-HTTP-Method-Override and others that change the meaning of a request; docs/http.md lists them)."`
	ReplayHeaders      *[]string `yaml:"replay-headers" name:"replay-headers" placeholder:"NAME,…" group:"Answers" help:"Headers of an answer that are kept and repeated, besides the usual ones; docs/http.md lists those."`
	RefusalOrigins     *[]string `yaml:"refusal-origins" name:"refusal-origins" placeholder:"ORIGIN,…" group:"Answers" help:"Origins, such as https://shop.example, whose pages may read the proxy's own answers (CORS); * for all, without credentials (default: none)."`
}

// Statuses tells which statuses of the upstream are results, and which say that nothing
// was done. A rule can set them. If a field is nil, the top level applies.
type Statuses struct {
	FinalStatuses    *[]int `yaml:"final-statuses" name:"final-statuses" placeholder:"STATUS,…" group:"Requests" help:"Statuses of the upstream that are results to keep, besides the ones in docs/http-answers.md, such as 402."`
	NoEffectStatuses *[]int `yaml:"no-effect-statuses" name:"no-effect-statuses" placeholder:"STATUS,…" group:"Requests" help:"Statuses of the upstream that say that nothing was done, so that the request may run again, besides the ones in docs/http-answers.md, such as 404 or 302."`
}

// compared resolves the options of Compared.
func (r *resolver) compared(c *Config, o *Compared) {
	c.FingerprintHeaders, c.ReplayHeaders, c.RefusalOrigins = or(o.FingerprintHeaders, nil), or(o.ReplayHeaders, nil), or(o.RefusalOrigins, nil)
	for field, names := range map[string][]string{"fingerprint-headers": c.FingerprintHeaders, "replay-headers": c.ReplayHeaders} {
		for _, name := range names {
			if !httpname.IsToken(name) {
				r.bad(field, name, "is no header name")
			}
		}
	}
	for _, origin := range c.RefusalOrigins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "") {
			r.bad("refusal-origins", origin, "is no origin; write one such as https://shop.example, or *")
		}
	}
}

// statuses checks the options of Statuses.
func (r *resolver) statuses(at func(string) string, route *Route, o *Statuses) {
	route.FinalStatuses, route.NoEffectStatuses = or(o.FinalStatuses, nil), or(o.NoEffectStatuses, nil)
	final := map[int]bool{}
	for _, s := range route.FinalStatuses {
		final[s] = true
		r.status(at("final-statuses"), s)
	}
	for _, s := range route.NoEffectStatuses {
		r.status(at("no-effect-statuses"), s)
		if final[s] {
			r.bad(at("no-effect-statuses"), fmt.Sprint(s), "is one of final-statuses, too")
		}
	}
}

func (r *resolver) status(field string, s int) {
	if s < http.StatusOK || s > 599 {
		r.bad(field, fmt.Sprint(s), "must be a status from 200 to 599")
	}
}
