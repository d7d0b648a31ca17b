# Two commands do all the set-up: `make demo` and `make test`.

CARGO ?= cargo
ARGS ?=

.PHONY: demo test check sim soak apart upgrade lakehouse compat applications dist deb image fmt setup-rust setup-clients

# A release build, then four organisations on this machine. Options: make demo ARGS="--skew 1.0 --seconds 10"
demo: setup-rust
	@scripts/install-missing.sh --optional psql:postgresql-client
	$(CARGO) build --release --locked -p entente
	@exec "$$(scripts/target-folder.sh)/release/entente" demo $(ARGS)

# Everything that must hold: formatting, lints, documentation, all tests. What fails does not keep the rest from being tested.
test: setup-rust setup-clients
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	$(CARGO) test --locked --workspace --no-fail-fast

# The quick part, for before a commit.
check: setup-rust
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked --workspace --lib --exclude entente

# Whole networks in one process, from seeds: make sim SEEDS=2000; make sim SEED=17 runs one again and says what it came to. With PRIVATE=1
# they have schemas with members.
SEEDS ?= 200
SIMULATION = $(CARGO) run --release --locked -p simulation --
sim: setup-rust
	$(SIMULATION) $(if $(PRIVATE),--private) $(if $(SEED),--first $(SEED) --seeds 1 --verbose,--seeds $(SEEDS) --threads $(shell nproc))

# What takes too long for every day: a thousand kills and losses of power of the state's disk; 200 networks with schemas that have
# members, each up to ten seconds of CPU; and a network of processes for an hour, with kills, joins, amendments and pruning, whose
# memory, descriptors and files must not grow. KILLS_SEED=7 takes other kills; MINUTES=10 is shorter. Plots: target/soak/report.html.
KILLS ?= 1000
NETWORKS ?= 200
MINUTES ?= 60
soak: setup-rust
	KILLS=$(KILLS) $(CARGO) test --locked -p disk --test power_loss -- --nocapture
	$(SIMULATION) --private --seeds $(NETWORKS) --threads $(shell nproc)
	$(CARGO) build --release --locked -p entente
	@target="$$(scripts/target-folder.sh)" && "$$target/release/entente" bench soak --minutes $(MINUTES) --out "$$target/soak" --json "$$target/soak.json"

# The page about founding again, where each organisation has a Linux user and a network namespace of its own. Needs root, a clone and a
# target folder that other users get to.
apart: setup-rust setup-clients
	@scripts/install-missing.sh ip:iproute2 setpriv:util-linux
	ENTENTE_APART=1 $(CARGO) test --locked -p entente --test founding -- --nocapture the_page_works_between

# A network of the release before this one is upgraded node by node while clients write. BEFORE is that release's program; without it
# the nodes are started again with this one.
BEFORE ?=
upgrade: setup-rust
	$(CARGO) build --release --locked -p entente
	ENTENTE_PROGRAM="$$(scripts/target-folder.sh)/release/entente" $(if $(BEFORE),ENTENTE_PROGRAM_BEFORE=$(abspath $(BEFORE))) \
	  $(CARGO) test --locked -p entente --test upgrade -- --nocapture

# DuckDB and Spark read the tables of a network that runs, and what they have read is proved. Fetches both the first time.
lakehouse: setup-rust
	$(CARGO) build --release --locked -p entente
	@scripts/lakehouse.sh "$$(scripts/target-folder.sh)/release/entente"

# The own tests of drivers and mappers, on PostgreSQL 15 and here: docs/compatibility-suites.md. Two hours the first time on 2 cores; a run that
# was stopped goes on. SUITES="asyncpg django" runs only these, AGAIN=django/queries runs one again; ENTENTE=… tests another program.
compat: setup-rust
	$(if $(ENTENTE),,$(CARGO) build --release --locked -p entente)
	@COMPAT_COMMIT="$(if $(ENTENTE),,$(shell git rev-parse --short=8 HEAD))" scripts/compat.sh "$(or $(ENTENTE),$$(scripts/target-folder.sh)/release/entente)"

# Applications that others wrote, from PyPI, Maven Central and npm, are used by a browser on four organisations: docs/applications.md, whose
# screenshots this takes anew. APPS=wagtail, APPS=keycloak or APPS=directus runs only this; ENTENTE=… takes another program.
applications: setup-rust
	$(if $(ENTENTE),,$(CARGO) build --release --locked -p entente)
	@scripts/applications.sh "$(or $(ENTENTE),$$(scripts/target-folder.sh)/release/entente)"

# One binary that needs nothing beside it, in dist/. Only the last crate is compiled and linked again, statically.
dist: setup-rust
	$(CARGO) rustc --release --locked -p entente --bin entente -- -C target-feature=+crt-static -C relocation-model=static -C strip=symbols
	@mkdir -p dist
	cp "$$(scripts/target-folder.sh)/release/entente" dist/entente
	@ls -l dist/entente

# A Debian package with that binary, a systemd unit, alert rules and a dashboard, in dist/ (docs/operating.md).
deb: dist
	@packaging/deb/build.sh dist/entente dist

# An OCI image with that binary, in dist/, for docker load, podman load and skopeo. No daemon makes it.
image: dist
	@scripts/install-missing.sh python3:python3
	@packaging/image/build.py dist/entente dist

fmt: setup-rust
	$(CARGO) fmt --all

setup-rust:
	@command -v $(CARGO) >/dev/null || { echo "Rust is missing: install rustup, then run this again"; exit 1; }
	@scripts/install-missing.sh cc:gcc c++:g++

# What tests need: clients, a C compiler, runtimes of drivers. ENTENTE_TESTS_WITHOUT=java,mvn leaves out what needs those.
setup-clients:
	@scripts/install-missing.sh --but "$(ENTENTE_TESTS_WITHOUT)" psql:postgresql-client pgbench:postgresql-contrib \
		python3:python3-venv node:nodejs npm:npm java:default-jdk-headless mvn:maven \
		systemd-analyze:systemd promtool:prometheus fakeroot:fakeroot curl:curl openssl:openssl
