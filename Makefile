# Building and testing need Go and nothing else, but for -race, which needs a C compiler, and interop, which needs the
# clients' own languages.

GO        ?= go
FUZZTIME  ?= 10s
# The longest that all fuzz targets together may take, in seconds; 0 is without bound. More targets get less time each.
FUZZTOTAL ?= 0
VERSION   ?= 0.1.0
REVISION  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
BUILT     ?= $(shell date -u +%Y-%m-%dT%H:%M:%SZ)
LDFLAGS   := -s -w -X main.version=$(VERSION) -X main.revision=$(REVISION) -X main.built=$(BUILT)
RACE      := $(if $(shell command -v "$$($(GO) env CC)"),-race)

# What the binary is made of: it is not linked anew while nothing of this changes.
SOURCES   := go.mod go.sum conf/embedded.cfg $(shell find cmd conf internal jute server session wire zab znode -name '*.go' ! -name '*_test.go')

.DEFAULT_GOAL := help
.PHONY: help build run test lint check fuzz crash sim plants interop complexity bench capture-ops clean

help: ## Print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: bin/zabra ## Build the static binary bin/zabra

bin/zabra: $(SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/zabra ./cmd/zabra

run: build ## Build, then serve on 127.0.0.1:2181 with the data in ./data
	exec bin/zabra server

test: ## Run all tests, with the race detector where there is a C compiler
	$(if $(RACE),,@echo 'no C compiler: testing without the race detector')
	$(GO) test $(RACE) -timeout 10m ./...

lint: ## Check format, vet, the house rules, and golangci-lint where it is installed
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' 2>/dev/null || find . -name '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags interop ./integration/...
	$(GO) vet -tags complexity ./server/...
	$(GO) test -count=1 ./internal/lint
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else echo 'golangci-lint is not installed, left out'; fi

check: lint test ## Everything that a change has to pass

fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@GO='$(GO)' FUZZTIME='$(FUZZTIME)' FUZZTOTAL='$(FUZZTOTAL)' bash .ci/fuzz

crash: ## Run the crash and fault tests of the storage and of whole servers, 500 seeds each
	$(GO) test -count=1 -timeout 20m -run 'Crash|Fail' ./internal/storage/...
	$(GO) test -count=1 -timeout 20m -run '^TestCrash' ./server

# SEEDS=1-1000 runs those seeds; without it as many are run as fit into SIMTIME.
SEEDS     ?=
SIMTIME   ?= 4m

sim: build ## Simulate ensembles with faults: SEEDS=A-B, or as many seeds as fit into SIMTIME (4m)
	bin/zabra sim $(if $(SEEDS),--seeds $(SEEDS),--seeds 1-1000000 --time $(SIMTIME))

plants: build ## Find every planted bug within 2,000 seeds
	@plants=$$(bin/zabra sim --plant list) || exit 1; \
	for p in $$plants; do bin/zabra sim --plant $$p --seeds 1-2000 --trace=-1 >bin/plant.out || exit 1; \
	echo "$$p: $$(grep -m 1 FAILS bin/plant.out)"; done; rm bin/plant.out

interop: build ## Run real clients of other languages against bin/zabra
	integration/interop/run.sh

complexity: ## Compare the cost of requests beside few and beside very many sessions, watches, children and znodes
	$(GO) test -count=1 -p 1 -timeout 10m -tags complexity -run '^TestCostDoesNotGrow' -v ./server/replica ./server

bench: ## Run the benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

# COMPARE holds arguments of the comparison: COMPARE='-rows get-64x16 -rounds 3', or -quick.
COMPARE   ?=

compare: build ## Measure Zabra and Apache ZooKeeper in turn (40 minutes), and write docs/benchmarks.md
	integration/compare.sh $(COMPARE)

capture-ops: ## Record anew what the reference server answers to operators, into server/testdata/ops
	integration/interop/install.sh
	$(GO) run ./integration/opscapture server/testdata/ops

clean: ## Remove what was built, but no data
	rm -rf bin
