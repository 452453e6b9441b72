# Semel. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := $(CURDIR)/bin
GOLANGCI_VERSION := v2.15.0
FUZZTIME ?= 60s
HOURS ?= 1

# Go's build cache keeps packages by their text, without the path of this checkout. So a second
# checkout compiles only what has changed.
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath

# The race detector needs a C compiler; without one the tests run without it. SQLite is C
# translated to Go, in which it finds nothing and takes five times as long.
RACE := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race -gcflags=modernc.org/...=-race=false)

# A real Kafka, where it is there; then its tests may not do without.
KAFKA = $(shell ./scripts/kafka/kafka have >/dev/null 2>&1 && echo 1 || echo 0)

# The modules of the workspace, the root first.
MODULES := $(shell $(GO) list -m -f '{{.Dir}}' 2>/dev/null)

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# The packages with tests that "make test" runs. The museum and the release have
# commands of their own. Those that kill processes and servers, or search all states of the
# model, run with the campaigns.
FAULTS = $(addprefix github.com/semel-go/semel/test/,chaos storm outage model)
ALL_PACKAGES = $(filter-out $(FAULTS),$(shell $(GO) list work | grep -vE '/test/(museum|release)$$'))

# The race detector watches the tests of the packages that are linked into programs of
# others. It does not watch those that start programs: test/, the examples, the demo and the
# command lines. Nor those of Pulsar: its client has data races of its own when it is closed
# while it connects.
PLAIN_PATTERN = semel/(test|examples)/|semel/cmd/semel/demo|internal/cli$$|semelpulsar$$

# The slowest come first, so that none of them runs alone at the end.
SLOW = $(addprefix github.com/semel-go/semel/,store/pgstore store/redisstore store/dynamostore consume/semelkafka/kafkatest \
	consume/semelamqp consume/semelamqp/amqptest consume/semelnats/natstest consume/semelsqs \
	consume/consumetest store/nearcache semelhttp store/sqlitestore)
SLOW_PLAIN = $(addprefix github.com/semel-go/semel/,cmd/semel/internal/cli cmd/semel/semel-deliver/internal/cli consume/semelpulsar test/sim)
WATCHED = $(SLOW) $(filter-out $(SLOW),$(shell printf '%s\n' $(ALL_PACKAGES) | grep -vE '$(PLAIN_PATTERN)'))
PLAIN = $(SLOW_PLAIN) $(filter-out $(SLOW_PLAIN),$(shell printf '%s\n' $(ALL_PACKAGES) | grep -E '$(PLAIN_PATTERN)'))

# The packages with campaigns, which are the tests named TestCampaign. The slowest come first.
SLOW_CAMPAIGNS = $(addprefix github.com/semel-go/semel/,examples/saga-kafka-postgres cmd/semel/semel-deliver/internal/cli \
	cmd/semel/demo examples/internal/campaign store/dynamostore consume/semelpulsar consume/semelnats/natstest cmd/semel/internal/cli)
CAMPAIGNS = $(SLOW_CAMPAIGNS) $(filter-out $(SLOW_CAMPAIGNS),$(shell git grep -l '^func TestCampaign' -- '*.go' | xargs -n1 dirname | sort -u | sed 's|^|github.com/semel-go/semel/|'))

# Compilers, linkers and tests may use more memory, and spend less time on collecting garbage.
test vet lint modules-check release-test test-kafka campaigns: export GOGC = 400

# Many tests wait for servers, so more packages run at a time than there are cores. Campaigns
# wait for more: for processes that they killed or froze.
LANES ?= 6
CAMPAIGN_LANES ?= 4

.PHONY: test
test: ## Run the tests of every module in their short form, the packages with the race detector (7 to 18 minutes on 2 cores)
	code=0; \
	$(GO) test $(RACE) -vet=off -p $(LANES) -short -timeout 60m $(WATCHED) || code=$$?; \
	$(GO) test -vet=off -p $(LANES) -short -timeout 60m $(PLAIN) || code=$$?; exit $$code
	@echo
	@[ -n "$(RACE)" ] || echo "LEFT OUT: the race detector, because there is no C compiler" >&2
	@echo "LEFT OUT: the race detector for tests that start programs: test, examples, demo and command lines; and with Pulsar, whose client has races"
	@echo "LEFT OUT: go vet and linters: make lint"
	@echo "LEFT OUT: campaigns under faults and load, storms and the model: make campaigns"
	@echo "LEFT OUT: semelkafka on Apache Kafka, because it ran on kfake only: make test-kafka"
	@echo "LEFT OUT: seeded bugs that the tests must catch: make museum"
	@echo "LEFT OUT: a release, made and used as users do: make release-test"
	@echo "LEFT OUT: tests whose server is not installed; make tools installs the servers on Debian"

# The race detector is for the short forms: campaigns would take twice to twenty times as
# long with it.
.PHONY: campaigns
campaigns: ## Run the tests that work for minutes under faults and load, and check the model
	$(GO) test -vet=off -p 1 -timeout 60m -short $(FAULTS) & faults=$$!; code=0; \
	$(GO) test -vet=off -p $(CAMPAIGN_LANES) -timeout 60m -run '^TestCampaign' $(CAMPAIGNS) || code=$$?; \
	wait $$faults || code=$$?; exit $$code

.PHONY: allocs
allocs: ## Run the tests that count allocations, to which the race detector would add its own
	$(GO) test -run 'Allocate' ./store ./store/nearcache

.PHONY: vet
vet: ## Check formatting, and vet every module; make lint does more
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted" >&2; exit 1; fi
	$(GO) vet work

.PHONY: vet-platforms
vet-platforms: ## Vet every module, its tests too, for Windows and macOS (some 10 minutes the first time)
	GOOS=windows CGO_ENABLED=0 $(GO) vet work
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet work

.PHONY: lint
lint: ## Run golangci-lint (installed into ./bin on first use)
	@if [ ! -x $(BIN)/golangci-lint ]; then echo "installing golangci-lint $(GOLANGCI_VERSION) into ./bin"; \
		GOWORK=off GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION); fi
	$(BIN)/golangci-lint run $(patsubst $(CURDIR)%,.%/...,$(MODULES))

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in all modules, with a database of a fixed date
	./scripts/vulncheck

.PHONY: modules-check
modules-check: ## Check that the root module requires nothing, and that each module builds alone and is tidy
	./scripts/modules-check

.PHONY: museum
museum: ## Show which test catches which seeded bug
	cd test/museum && $(GO) test -count=1 -timeout 120m -v .

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (60s)
	./scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## Measure Semel beside other ways, and write docs/benchmarks.md, sizing.md and scale.md (about 25 minutes on 2 cores)
	@$(MAKE) --no-print-directory tools
	cd test && $(GO) run ./benchmarks -out ../docs

.PHONY: compare
compare: ## Run the other benchmarks that compare contenders side by side; each prints its ratios (about half an hour)
	./scripts/compare

.PHONY: docs
docs: ## Write the pages of docs/reference that are made from the code
	SEMEL_WRITE_DOCS=1 $(GO) test -count=1 -run '^TestReference_' ./cmd/semel/internal/cli ./cmd/semel/semel-deliver/internal/cli ./semelotel ./test/docs

.PHONY: site
site: ## Make a site of the pages in bin/site, with Sphinx from PyPI
	./scripts/site/site $(BIN)/site

.PHONY: evidence
evidence: ## Run the long forms of all that counts, and write docs/evidence.md (some hours on 2 cores; after an interruption it goes on with what is left)
	@$(MAKE) --no-print-directory tools
	cd test && SEMEL_TEST_KAFKA=$(KAFKA) $(GO) run ./evidence -missing -out ../docs/evidence.md

.PHONY: model
model: ## Check each variant of the protocol's model with Spin
	@$(MAKE) --no-print-directory tools
	cd test/model && $(GO) test -count=1 -v .

.PHONY: soak
soak: ## Run the simulator on fresh seeds for HOURS (1), watching memory and goroutines
	cd test/sim && SEMEL_SOAK=$(HOURS)h $(GO) test -count=1 -timeout 0 -v -run '^TestSoak$$' .

.PHONY: tools
tools: ## Install what the tests need besides Go (as root on Debian; elsewhere: say what is missing)
	@./scripts/install-tools

.PHONY: demo
demo: ## Watch duplicates, races and crashes go through Semel
	$(GO) run ./cmd/semel/demo

.PHONY: demo-events
demo-events: ## The same with messages, a broker and consumers
	$(GO) run ./cmd/semel/demo --events

.PHONY: demo-saga
demo-saga: ## Orders over three systems, undone if one refuses, while their workers are killed
	$(GO) run ./cmd/semel/demo --saga

.PHONY: test-kafka
test-kafka: ## Run the tests of semelkafka that are for Apache Kafka, fetched from Maven Central, and the long ones
	./scripts/kafka/kafka fetch
	cd consume/semelkafka/kafkatest && SEMEL_TEST_KAFKA=only $(GO) test -vet=off -count=1 -timeout 60m .

.PHONY: test-postgres17
test-postgres17: ## Run the tests of pgstore on PostgreSQL 17, fetched on Debian
	cd store/pgstore && SEMEL_TEST_REQUIRE=1 SEMEL_TEST_POSTGRES_BIN="$$(../../scripts/postgres17)" $(GO) test -count=1 ./...

.PHONY: test-pgbouncer
test-pgbouncer: ## Run the tests of pgstore that need PgBouncer on 1.24, fetched on Debian
	cd store/pgstore && SEMEL_TEST_REQUIRE=1 SEMEL_TEST_PGBOUNCER_BIN="$$(../../scripts/pgbouncer124)" $(GO) test $(RACE) -count=1 -run 'PgBouncer|Pool|ManyCallsForFewConnections|Prefetch' .

.PHONY: test-redis8
test-redis8: ## Run the tests of redisstore on Redis 8 and on Valkey 8, fetched on Debian
	for server in redis valkey; do (cd store/redisstore && bin="$$(../../scripts/redis8 $$server)" && SEMEL_TEST_REQUIRE=1 SEMEL_TEST_REDIS_BIN="$$bin" $(GO) test -count=1 ./...); done

.PHONY: release-test
release-test: ## Make a release twice, compare the bytes, and use it as users do (minutes)
	cd test && SEMEL_TEST_RELEASE=1 $(GO) test -count=1 -timeout 60m -v ./release

.PHONY: release
release: ## Make the release VERSION in bin/release-VERSION; publishes nothing
	./scripts/release $(VERSION)
