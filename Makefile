# SPDX-License-Identifier: BSD-3-Clause
#
# make demo    install what is needed, build, and reproduce Figure 6 of the PSS paper (PSS compared with DWRR)
# make test    every test except the long ones, in about 27 minutes on two cores (PARTS="core rust" for some of its parts)
# make test-long  the long ones: those marked `long` in Python, those in modules named `long` in Rust
# make quick   format, lint, and the tests of what was changed since the main branch (a minute once built; SINCE=COMMIT)
# make lint    format and lint
# make lint-rust  the same of Rust alone (PACKAGES="-p linkweir-sim" for some of its crates)
# make check   format, lint and the fast tests (minutes)
# make site    the documentation as a site in build/site, checked in a browser (minutes)
# make playground  installs what compiles the simulator for browsers, puts it into the Python package, and makes the site with the playground
# make notebooks  runs the notebooks of the documentation and keeps what they show
# make pictures  draws the plots of the documentation again; as root also the picture of the gateway's page
# make bench   speed, compared with other programs, in one run
# make fuzz    fuzz the core, readers of files, and a link that a program drives (SECONDS=60 each)
# make prove   prove the core's guarantees with Rocq, and the absence of run-time errors with Frama-C
# make mutate  mutation tests of the core
# make format  format all sources
# make policy  create the files of a new policy (NAME=edf)
# make lab     build the laboratory's kernel, in which scenarios run with Linux's own qdiscs and TCP
# make accuracy  how exactly emulated links and an overloaded gateway keep their settings, in real time, as root
# make endure  the gateway's long tests: 10 million datagrams, 100,000 forged handshakes a second, an outage of a minute, as root
# make crash   kill -9 at 200 random instants of a sweep of 200 runs; each time it must resume and give the same bytes
# make manuals  the manual pages and the gateway's completions, of the programs' help
# make keys    the tables of keys in docs/reference, from their declarations
# make names   the names that docs/reference/stability.md promises to keep, which a test compares
# make deb     the gateway's Debian package, in build/
# make release  the files of a release from a commit, in an empty folder (COMMIT=v0.1.0 OUT=DIR): wheels, sdist, .debs, sums
# make fresh   demo, check and deb on fresh Debian 12 and 13 systems, as root (SYSTEMS="debian-13" for one of them)
# make fresh-release  installs the files in build/release, or RELEASE=DIR, on bare Debian 12 and 13 systems, as root
# make sites   does what docs/howto/gateway.md says, on two bare Debian systems with a router between them, as root
# make kernel-wireguard  a gateway with two paths to the kernel's WireGuard, on Debian's kernels in QEMU
# make tunnel-arm64  a tunnel on Debian's arm64 kernel in QEMU, with the arm64 package in build/release, or RELEASE=DIR
# make transport  compares the simulator's TCP with the kernel's over about 90 scenarios, in the laboratory, and records it
# make ns3     build and test the module for ns-3 against 3.37 (Debian 12), 3.44 (PyPI), 3.48 (Debian sid) and 3.48's source tree, as root (NS3=3.44)
# make ns3-dist  the module as a tarball for contrib/ of ns-3's tree, in build/ns3-dist
# make bpf     the policies as BPF programs in Debian 13's backported kernel in QEMU; what cannot be had is named and skipped
# make imported   compares what import reads of random configurations of tc with the classes of a kernel
# make agreement  compares theory, simulator, qdisc, gateway and ns-3 over eight figures, and decisions, in BPF too, as root; records it
# make coverage  how often verdicts of compare are wrong, in 240,000 short runs whose truth is known, and records it
# make robust  tests and scenarios in kernels that check memory accesses, locks and data races (KASAN, KCSAN, lockdep)

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
SECONDS ?= 60
CARGO_DEB := target/tools/bin/cargo-deb
CARGO_CYCLONEDX := target/tools/bin/cargo-cyclonedx

export CARGO_TERM_COLOR ?= never

NATIVE_SOURCES := $(shell find core/src core/include crates -name '*.[ch]' -o -name '*.def' -o -name '*.rs' -o -name Cargo.toml -o -name sources.txt) Cargo.toml Cargo.lock

.PHONY: help demo test test-long quick lint lint-rust check bench fuzz prove mutate format clean build lab accuracy endure crash deb release fresh fresh-release sites kernel-wireguard tunnel-arm64 transport imported agreement coverage robust policy site playground pictures manuals notebooks keys names ns3 ns3-dist bpf

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

# --- building -------------------------------------------------------------------------------------------------------

build: $(VENV)/.built

$(VENV)/.packages: requirements/build.lock setup.sh
	@./setup.sh build
	@echo "Making $(VENV) and installing the Python packages of requirements/build.lock"
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement requirements/build.lock
	@touch $@

$(VENV)/.built: $(VENV)/.packages $(NATIVE_SOURCES) pyproject.toml
	@echo "Building the core, the simulator and the Python package into $(VENV)"
	@VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(VENV)/bin/maturin develop --release --locked --quiet >$(VENV)/maturin.log 2>&1 || { cat $(VENV)/maturin.log; exit 1; }
	@touch $@

$(VENV)/.test-packages: $(VENV)/.packages requirements/test.lock
	@echo "Installing the Python packages of requirements/test.lock into $(VENV)"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement requirements/test.lock
	@touch $@

$(VENV)/.site-packages: $(VENV)/.packages requirements/site.lock
	@echo "Installing the Python packages of requirements/site.lock into $(VENV)"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement requirements/site.lock
	@touch $@

# --- the main job ---------------------------------------------------------------------------------------------------

demo: build
	$(VENV)/bin/linkweir reproduce pss --figure 6 --out runs/demo --force

# --- tests ----------------------------------------------------------------------------------------------------------

# Sphinx needs Python 3.11. Its packages are installed before the tests use $(VENV).
SITE := $(if $(shell python3 -c 'import sys; print("yes" if sys.version_info >= (3, 11) else "")'),$(VENV)/.site-packages)

test: $(VENV)/.built $(VENV)/.test-packages $(SITE)
	@$(PYTHON) python/suite.py test $(PARTS)

test-long: $(VENV)/.built $(VENV)/.test-packages
	./setup.sh test lab
	cargo test --locked --workspace --quiet -- long::
	$(MAKE) -C core check FEW=100
	$(PYTHON) -m pytest --quiet -rs -m long oracle python/tests

# Rust's lints and format change with its version. Warnings and format fail the check with the version of development only;
# with every version, code that does not compile or parse fails it.
RUST_OF_DEVELOPMENT := 1.95
PACKAGES := --workspace
CLIPPY := cargo clippy --locked $(PACKAGES) --all-targets --quiet --
SHOWN_ONLY = echo "check: the warnings above, if any, are from $$(rustc --version); only Rust $(RUST_OF_DEVELOPMENT) warnings fail the check"

# $(call by-rust,fmt or clippy,COMMAND WITH THE RUST OF DEVELOPMENT,COMMAND WITH ANOTHER)
define by-rust
@case $$(cargo $(1) --version 2>/dev/null && rustc --version) in \
*"rustc $(RUST_OF_DEVELOPMENT)."*) $(2) ;; \
*rustc*) $(3) ;; \
*) echo "check: NOT CHECKED: cargo $(1) is not here (with rustup: rustup component add clippy rustfmt)" ;; \
esac
endef

define lint-rust
$(call by-rust,fmt,cargo fmt --check,cargo fmt -- --emit stdout >/dev/null && { cargo fmt --check || $(SHOWN_ONLY); })
$(call by-rust,clippy,$(CLIPPY) -D warnings,$(CLIPPY) --cap-lints warn && $(SHOWN_ONLY))
endef

quick: $(VENV)/.built $(VENV)/.test-packages
	@$(PYTHON) python/quick.py $(if $(SINCE),--since $(SINCE))

lint-rust:
	$(lint-rust)

lint: $(VENV)/.built $(VENV)/.test-packages lint-rust
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/lint-imports --no-logo --no-cache
	$(VENV)/bin/mypy

check: $(VENV)/.built $(VENV)/.test-packages
	@$(PYTHON) python/suite.py check $(PARTS)

# --- documentation --------------------------------------------------------------------------------------------------

site: $(VENV)/.built $(VENV)/.site-packages
	./setup.sh site
	rm -rf build/site
	$(PYTHON) docs/site/stage.py build/site-source
	$(PYTHON) -m sphinx --quiet --fail-on-warning --keep-going --fresh-env --jobs 2 build/site-source build/site
	$(PYTHON) docs/site/check.py build/site

playground:
	./setup.sh build playground
	python3 docs/site/playground.py
	$(MAKE) site

manuals: $(VENV)/.built
	$(PYTHON) python/manual.py
	LINKWEIR_WRITE_MANUALS=1 cargo test --locked --quiet -p linkweir-gateway --test manual

notebooks: $(VENV)/.built $(VENV)/.test-packages
	$(PYTHON) docs/notebooks/execute.py

keys: $(VENV)/.built
	$(PYTHON) docs/site/keys.py
	$(PYTHON) crates/linkweir-py/typed_scenario.py

names: $(VENV)/.built
	$(PYTHON) python/tests/stable_names.py

pictures: $(VENV)/.built
	$(PYTHON) docs/pictures/core.py
	$(PYTHON) docs/pictures/readme.py
	$(PYTHON) docs/pictures/report.py
	$(PYTHON) docs/pictures/policies.py
	$(PYTHON) docs/pictures/gallery.py --list
	@if [ "$$(id -u)" = 0 ]; then cargo build --locked --release --quiet -p linkweir-gateway && $(PYTHON) docs/pictures/live_page.py; \
	else echo "pictures: docs/images/live.png is left as it is: its namespaces need root"; fi

# --- slower proofs and measurements ---------------------------------------------------------------------------------

bench: $(VENV)/.built
	./setup.sh bench
	cargo build --locked --release --quiet -p linkweir-sim --examples
	$(PYTHON) bench/core.py
	$(PYTHON) bench/codes.py
	$(PYTHON) bench/peers.py
	$(PYTHON) bench/gateway.py

lab: $(VENV)/.built
	./setup.sh lab
	$(VENV)/bin/linkweir lab build-kernel

accuracy: $(VENV)/.built
	cargo build --locked --release --quiet -p linkweir-gateway
	$(PYTHON) bench/emulator.py --trace scenarios/traces/lte-drive.csv --both
	$(PYTHON) bench/overload.py
	$(PYTHON) bench/feedback.py

endure:
	./setup.sh build test
	LINKWEIR_DATAGRAMS=10000000 cargo test --locked --release -p linkweir-gateway --test datagrams -- --nocapture
	@echo "Floods, outages and other programs: figures and results, without the messages of the gateways"
	@set -o pipefail; for part in flood resume interop; do \
		LINKWEIR_FLOOD_S=10 LINKWEIR_OUTAGE_S=60 cargo test --locked --release -p linkweir-gateway --test namespaces $$part 2>&1 \
			| grep --line-buffered --invert-match '^linkweir-gateway: ' || exit 1; \
	done

crash: $(VENV)/.built $(VENV)/.test-packages
	LINKWEIR_CRASHES=200 $(PYTHON) -m pytest --quiet -s python/tests/test_crash.py

$(CARGO_DEB):
	./setup.sh build deb
	cargo install --locked --quiet --version 3.6.3 --no-default-features --root target/tools cargo-deb

deb: $(CARGO_DEB)
	./setup.sh build deb
	cargo build --locked --release --quiet -p linkweir-gateway
	mkdir -p build
	$(CARGO_DEB) --package linkweir-gateway --no-build --locked --output build/linkweir-gateway.deb
	crates/linkweir-gateway/debian/check.sh build/linkweir-gateway.deb

$(CARGO_CYCLONEDX):
	@./setup.sh build
	cargo install --locked --quiet --version 0.5.9 --root target/tools cargo-cyclonedx

COMMIT := HEAD
OUT := build/release

release: $(CARGO_DEB) $(CARGO_CYCLONEDX)
	./setup.sh build playground deb kernel-deb release
	python3 release/release.py --commit "$(COMMIT)" --out "$(OUT)"

fresh:
	./setup.sh fresh
	python3 machines/fresh.py $(SYSTEMS)

RELEASE := build/release

fresh-release:
	./setup.sh fresh
	python3 machines/installs.py --release "$(RELEASE)" $(SYSTEMS)

sites: deb
	./setup.sh fresh
	python3 machines/sites.py

kernel-wireguard:
	./setup.sh build amd64
	cargo build --locked --release --bin linkweir-gateway
	python3 machines/kernel_wireguard.py

tunnel-arm64:
	./setup.sh arm64
	python3 machines/tunnel_arm64.py --release "$(RELEASE)"

# what is stored in runs/transport is not run again; exit code 3 of the program: some scenario is outside its bound
transport: $(VENV)/.built
	./setup.sh lab
	$(PYTHON) lab/transport/transport.py --into docs/records/transport.md || test $$? = 3

imported: $(VENV)/.built
	$(PYTHON) lab/imported/compare.py 1000

coverage: $(VENV)/.built
	$(PYTHON) python/tests/verdict_coverage.py docs/records/compare-coverage.md

# what is stored in runs/agreement is not run again; exit code 3 of a program: something is outside its bound; without the tools
# of BPF that place is left out
agreement: $(VENV)/.built
	./setup.sh lab ns3
	./setup.sh bpf || echo "agreement: BPF is left out, for the reason above"
	cargo build --locked --release --quiet -p linkweir-gateway
	$(PYTHON) lab/agreement/agreement.py --into docs/records/agreement.md || test $$? = 3
	$(PYTHON) lab/agreement/decisions.py --into docs/records/agreement.md || test $$? = 3

robust: $(VENV)/.built
	./setup.sh lab kernel-test
	$(PYTHON) lab/robust.py --out lab/robust.txt

NS3 := 3.37 3.44 3.48 3.48-tree

ns3: ns3-dist
	./setup.sh ns3
	python3 ns3/releases.py $(NS3)

ns3-dist:
	ns3/dist.sh build/ns3-dist

# With a target, build scripts and macros are not instrumented. Findings are written to build/fuzz.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
COVERAGE := -Cpasses=sancov-module -Ccodegen-units=1 --cfg fuzzing \
	$(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)

bpf:
	./setup.sh bpf
	$(MAKE) -C bpf test

fuzz:
	./setup.sh build fuzz
	$(MAKE) -C core fuzz SECONDS=$(SECONDS)
	RUSTFLAGS="$(COVERAGE)" cargo build --locked --release --quiet --target "$(HOST)" --target-dir build/fuzz/target \
		--manifest-path crates/linkweir-config/fuzz/Cargo.toml
	python3 crates/linkweir-config/fuzz/seeds.py build/fuzz/seeds
	set -e; for target in read files link tunnel recording; do \
		mkdir -p build/fuzz/corpus/$$target build/fuzz/tmp; \
		TMPDIR=build/fuzz/tmp build/fuzz/target/$(HOST)/release/$$target -max_len=4096 -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=1024 \
			-print_final_stats=1 -artifact_prefix=build/fuzz/$$target- build/fuzz/corpus/$$target build/fuzz/seeds/$$target; \
	done

prove:
	./setup.sh prove
	$(MAKE) -C core prove

mutate: $(VENV)/.test-packages
	$(PYTHON) core/tests/mutate.py

# only NAME from the command line counts, as the environment may have a variable of that name
policy:
	@test "$(origin NAME)" = "command line" || { echo "NAME is missing: make policy NAME=edf"; exit 2; }
	python3 core/template/lay_down.py $(NAME)

format: $(VENV)/.test-packages
	./setup.sh check
	cargo fmt
	$(VENV)/bin/ruff format .

clean:
	rm -rf target $(VENV) build runs
	$(MAKE) -C core clean
