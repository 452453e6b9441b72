# Semel. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := $(CURDIR)/bin
GOLANGCI_VERSION := v2.15.0
FUZZTIME ?= 60s

# The race detector needs a C compiler; without one the tests run without it.
RACE := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)

# The modules of the workspace, the root first.
MODULES := $(shell $(GO) list -m -f '{{.Dir}}' 2>/dev/null)

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: test
test: modules-check vet ## Run every test of every module with the race detector, then the bug museum
	@[ -n "$(RACE)" ] || echo "NO C COMPILER: the tests run WITHOUT the race detector" >&2
	$(GO) test $(RACE) $$($(GO) list work | grep -v '^github.com/semel-go/semel/test')
	cd test && $(GO) test $(RACE) -count=1 $$($(GO) list ./... | grep -v /museum)
	$(MAKE) --no-print-directory museum

.PHONY: quick
quick: ## Run every test in its short form, without the race detector
	$(GO) test -short work

.PHONY: race
race: ## Run every test of every module with the race detector
	$(GO) test -race -count=1 work

.PHONY: vet
vet: ## Check formatting, and vet every module
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted" >&2; exit 1; fi
	$(GO) vet work

.PHONY: lint
lint: ## Run golangci-lint (installed into ./bin on first use)
	@if [ ! -x $(BIN)/golangci-lint ]; then echo "installing golangci-lint $(GOLANGCI_VERSION) into ./bin"; \
		GOWORK=off GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION); fi
	@for dir in $(MODULES); do echo "lint $${dir#$(CURDIR)}"; (cd $$dir && $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: modules-check
modules-check: ## Check that the root module requires nothing, and that each module builds alone and is tidy
	./scripts/modules-check

.PHONY: museum
museum: ## Show which test catches which seeded bug
	cd test/museum && $(GO) test -count=1 -timeout 30m -v .

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (60s)
	./scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## Run the benchmarks that compare contenders side by side
	./scripts/bench

.PHONY: evidence
evidence: ## Run the long forms: fuzzing, kills, histories and comparisons (about an hour)
	./scripts/evidence

.PHONY: demo
demo: ## Watch duplicates, races and crashes go through Semel
	$(GO) run ./cmd/semel demo
