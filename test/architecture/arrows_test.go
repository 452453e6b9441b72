package architecture

import (
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// allowed says which packages of this repository those of a directory may
// import, outside of tests. The longest directory that fits counts; a
// directory ends with /... if what is below it belongs to it. "/..." alone is
// any package but cmd and test. A directory that may import the root may import
// package driver, too.
var allowed = map[string][]string{
	"store":                          {},
	"store/memstore":                 {"store"},
	"store/coalesce":                 {"store"},
	"store/timed":                    {"store"},
	"store/encrypted":                {"store"},
	"store/moved":                    {"store", "internal/..."},
	"store/shardstore":               {"store", "internal/clocks"},
	"store/nearcache":                {"store", ".", "internal/protocol"},
	"store/storetest":                {"store", "store/memstore"}, // the memory store is the oracle of its histories
	"store/...":                      {"store", "store/coalesce", "."},
	"store/pgstore":                  {"store", "store/coalesce", ".", "store/pgstore/internal/..."},
	"store/pgstore/pgtest":           {"internal/proctest"}, // starts a server, as the other two do
	"store/redisstore/redistest":     {"internal/proctest"},
	"store/dynamostore/dynamotest":   {"internal/proctest"},
	"consume/semelamqp/amqptest":     {"internal/proctest"},
	"consume/semelsqs/sqstest":       {"internal/proctest"},
	"consume/semelpulsar/pulsartest": {"internal/proctest"},
	"store/pgstore/pgkafka":          {"store/pgstore", "store/pgstore/internal/handlertx", "store/pgstore/internal/pgwire"},
	"store/pgstore/internal/...":     {"store", "store/coalesce"},
	"store/pgstore/internal/notify":  {"store/pgstore/internal/pgwire"},
	"store/pgstore/internal/table":   {"store", "store/pgstore/internal/pgwire"},
	"store/pgstore/internal/schema":  {"store", "store/pgstore/internal/pgwire", "store/pgstore/internal/table"},
	".":                              {"store", "store/encrypted", "internal/..."},
	"internal/...":                   {"store", "internal/..."},
	"internal/acts":                  {"store", ".", "outbox"}, // knows after which errors nothing was changed
	"driver":                         {"store", ".", "internal/..."},
	"sweep":                          {"store", ".", "internal/..."},
	"erase":                          {"store", "store/encrypted", ".", "internal/..."},
	"internal/answertest":            {"store", "store/memstore", ".", "semelhttp"}, // compares adapters of semelhttp
	"semelhttp":                      {"store", ".", "internal/..."},
	"semelhttp/...":                  {".", "semelhttp"},
	"consume":                        {"store", ".", "consume/driver", "internal/..."},
	"consume/driver":                 {"store", "."},
	"consume/consumetest":            {"store", ".", "consume", "consume/driver"},
	"consume/...":                    {"store", ".", "consume", "consume/driver", "outbox"},
	"consume/semelnats/natstest":     {"store", ".", "consume", "consume/..."},                                                                    // tests that need a server
	"consume/semelkafka/kafkatest":   {"store", ".", "consume", "consume/..."},                                                                    // likewise
	"consume/semelkafka/kafkapg":     {"store", ".", "consume", "consume/driver", "consume/semelkafka", "store/pgstore", "store/pgstore/pgkafka"}, // joins the two
	"outbox":                         {"store", "internal/..."},
	"outbox/...":                     {"store", "outbox"},
	"outbox/webhook":                 {"store", "outbox", "internal/httpname"},   // httpname reads Retry-After
	"outbox/outboxtest":              {"store", "store/memstore", ".", "outbox"}, // runs calls whose handlers write messages
	"store/pgstore/pgoutbox":         {"store", "outbox", "store/pgstore", "store/pgstore/internal/pgwire"},
	"store/sqlitestore/sqliteoutbox": {"store", "outbox", "store/sqlitestore"},
	"saga":                           {"store", ".", "internal/..."},
	"console":                        {"store", "store/encrypted", ".", "saga", "outbox", "console/rates", "internal/..."},
	"console/rates":                  {"."}, // in its tests
	"semellambda":                    {"store", ".", "consume", "consume/driver", "semelhttp"},
	"semelconnect":                   {"store", ".", "semelhttp"},
	"semelgrpc":                      {"store", ".", "semelhttp"},
	"semelmcp":                       {"store", "."},
	"semelotel":                      {"store", ".", "store/timed", "consume", "consume/driver"},
	"cmd/...":                        {"/...", "cmd/..."},
	"test/...":                       {"/...", "test/...", "cmd/..."},
	"examples/...":                   {"/..."},
	"scripts/...":                    {},
}

func TestImports_FollowTheTable(t *testing.T) {
	for _, f := range goFiles(t) {
		rule := ruleOf(f.Dir())
		if rule == nil {
			t.Errorf("%s:1: no rule says what %q may import; add it to the table of this test", f.Name, f.Dir())
			continue
		}
		for _, s := range f.ast.Imports {
			dir, ours := directory(s.Path.Value)
			switch {
			case !ours || f.IsTest():
			case dir == "driver" && slices.Contains(rule, "."):
			case !slices.ContainsFunc(rule, func(p string) bool { return fits(p, dir) }) && dir != f.Dir():
				t.Errorf("%s: %s may not import %s; only %v", f.at(s), f.Dir(), dir, rule)
			}
		}
	}
}

// shared are the packages for the tests of every module: one starts processes, one
// compares adapters of semelhttp, one compares pages that are made from the code, one makes
// records. They
// are internal to the root module, so that no other repository depends on them.
var shared = []string{"internal/proctest", "internal/answertest", "internal/pagetest", "internal/recordtest"}

// Nothing, including tests, depends on a command, on the module test, or on a
// package that is internal to another module. The modules below cmd/semel are an
// exception: they are modules of their own so that semel links no broker, but they are
// released with cmd/semel and share its packages.
func TestImports_NoCommandTestOrForeignInternal(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, s := range f.ast.Imports {
			dir, ours := directory(s.Path.Value)
			if !ours {
				continue
			}
			from := f.Dir()
			if (fits("cmd/...", dir) || fits("test/...", dir)) && !fits("cmd/...", from) && !fits("test/...", from) {
				t.Errorf("%s: %s imports %s; nothing outside of cmd and test may", f.at(s), from, dir)
			}
			if above, _, internal := strings.Cut(dir+"/", "internal/"); internal && !slices.Contains(shared, dir) && !fits("cmd/semel/...", from) && moduleOf(t, from) != moduleOf(t, strings.TrimSuffix(above, "/")) {
				t.Errorf("%s: %s imports %s, which is internal to another module", f.at(s), from, dir)
			}
		}
	}
}

// Only tests and packages made for tests import a package made for tests.
func TestImports_TestPackages_OnlyInTests(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.IsTest() || strings.HasSuffix(f.Dir(), "test") || fits("test/...", f.Dir()) {
			continue
		}
		for _, s := range f.ast.Imports {
			path := strings.Trim(s.Path.Value, `"`)
			if strings.HasSuffix(path, "test") || path == "testing" || strings.HasPrefix(path, "testing/") {
				t.Errorf("%s: %s is no test, but imports %s", f.at(s), f.Dir(), path)
			}
		}
	}
}

// Semel links no client of a broker: whoever runs the proxy does not get the faults of
// five clients, and their size.
func TestImports_Semel_LinksNoBroker(t *testing.T) {
	for _, f := range goFiles(t) {
		if moduleOf(t, f.Dir()) != "cmd/semel" {
			continue
		}
		for _, s := range f.ast.Imports {
			path := strings.Trim(s.Path.Value, `"`)
			if dir, ours := directory(s.Path.Value); ours && fits("consume/...", dir) || slices.ContainsFunc(brokers, func(b string) bool { return strings.HasPrefix(path, b) }) {
				t.Errorf("%s: %s imports %s; what needs a broker belongs to cmd/semel/semel-deliver", f.at(s), f.Dir(), path)
			}
		}
	}
}

// brokers begin the paths of clients of brokers.
var brokers = []string{
	"github.com/twmb/franz-go", "github.com/rabbitmq/", "github.com/nats-io/", "github.com/aws/aws-sdk-go-v2/service/sqs", "github.com/apache/pulsar-client-go",
}

func TestImports_RootModule_StandardLibraryOnly(t *testing.T) {
	for _, f := range goFiles(t) {
		if moduleOf(t, f.Dir()) != "." {
			continue
		}
		for _, s := range f.ast.Imports {
			first, _, _ := strings.Cut(strings.Trim(s.Path.Value, `"`), "/")
			if _, ours := directory(s.Path.Value); !ours && strings.Contains(first, ".") {
				t.Errorf("%s: the root module requires nothing, tests included, but imports %s", f.at(s), s.Path.Value)
			}
		}
	}
}

// directory is the directory of a package, if it is of this repository.
func directory(quoted string) (string, bool) {
	path := strings.Trim(quoted, `"`)
	if path == repo.Module {
		return ".", true
	}
	return strings.CutPrefix(path, repo.Module+"/")
}

func ruleOf(dir string) []string {
	if rule, ok := allowed[dir]; ok {
		return rule
	}
	best, rule := "", []string(nil)
	for pattern, r := range allowed {
		if fits(pattern, dir) && len(strings.TrimSuffix(pattern, "...")) > len(strings.TrimSuffix(best, "...")) {
			best, rule = pattern, r
		}
	}
	return rule
}

func fits(pattern, dir string) bool {
	if pattern == "/..." {
		return !fits("cmd/...", dir) && !fits("test/...", dir)
	}
	above, below := strings.CutSuffix(pattern, "/...")
	return pattern == dir || below && (dir == above || strings.HasPrefix(dir, above+"/"))
}

func TestRuleOf_LongestPatternApplies(t *testing.T) {
	for dir, want := range map[string]string{
		".": "internal/...", "store": "", "store/memstore": "store", "store/storetest": "store/memstore", "store/pgstore": "store/coalesce",
		"store/pgstore/internal/pool": "store/coalesce", "consume": "internal/...", "consume/semelkafka": "consume", "cmd/semel": "cmd/...",
		"elsewhere": "none",
	} {
		rule := ruleOf(dir)
		if rule == nil && want != "none" || rule != nil && want == "none" || want != "" && want != "none" && !slices.Contains(rule, want) {
			t.Errorf("%s: the rule is %v", dir, rule)
		}
	}
	if fits("store", "store/memstore") || !fits("/...", "store/memstore") || fits("/...", "cmd/semel") {
		t.Error("a pattern fits what it must not, or does not fit what it must")
	}
}
