# `make run` starts the server, `make test` runs every test once; `make` alone lists the targets.
# `make run ARGS="--apns 0.0.0.0:2197 --rules strict"` passes flags to `apns-mock serve`.

SWIFT ?= swift
PYTHON ?= python3
ARGS ?=
PYTEST_ARGS ?=
TEST_ARGS ?=
SOAK_MINUTES ?= 10
SOAK_ARGS ?=
BENCH_ARGS ?=
ATTACK_ARGS ?=
CAMPAIGN_ARGS ?=
DIST_ARGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
RELEASE =
# Seconds per fuzzer, and the fuzzers to run; all of them if empty.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?=
FUZZ_QUICK ?=

# The program that the client tests run; set it to test one that is already built, such as that of `make dist`.
PROGRAM ?=
program = $(or $(PROGRAM),.build/release/apns-mock)
# Set to make targets of tests without a build: `make test` has built before.
BUILT ?= $(PROGRAM)
built = $(if $(BUILT),,build)
built_tests = $(if $(BUILT),,build-tests)
clients = .build/clients
# Most client tests wait rather than compute, so more of them run at once than there are cores. `-n0` in PYTEST_ARGS runs
# them one after the other.
workers := $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN))))
pytest = $(clients)/bin/python -m pytest Tests/Clients -n $(workers)
flags = $$(.ci/build-flags)
# Runs the Swift tests that were built into a folder. On Linux they are a program, and SwiftPM would plan the build again first.
ifeq ($(shell uname -s),Linux)
swift_tests = $(1)/release/apns-mockPackageTests.xctest --testing-library swift-testing
else
swift_tests = $(SWIFT) test --skip-build --enable-swift-testing $(flags) --scratch-path $(1)
endif

# Python keeps what pytest has compiled of the tests; otherwise each of its processes would do that again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL = help
# Concurrent builds would wait for each other's lock.
.NOTPARALLEL:
.PHONY: help run build build-tests build-optimized test test-quick test-all test-swift test-clients test-store test-stores test-languages test-libraries examples \
  example-swift campaigns soak attacks screenshots docs asan tsan asan-clients tsan-clients tsan-threads fuzz fuzz-quick bench bench-chart lint format clean dist test-dist test-image lint-distribution \
  install uninstall

help:
	@echo 'Before a commit (aims on two quiet cores):'
	@echo '  make test-quick     after each change: Swift tests, client tests under 100 ms; 2 min if the tree is built'
	@echo '  make test           before a commit: every promise once; 15 min from a clean clone'
	@echo '  make test-all       nightly: every store, long tests, sanitizers, fuzzers, packages; hours'
	@echo
	@echo 'make run            build, start the server (ARGS="…" are flags of apns-mock serve)'
	@echo 'make build          the program, not optimized: $(program)'
	@echo 'make test-swift     only the Swift tests (TEST_ARGS="--filter WaitingTests")'
	@echo 'make test-clients   only the client tests (PYTEST_ARGS="-k curl" selects)'
	@echo 'make test-store     a third of the client tests of the inbox on each database; make test-stores runs all client tests on both'
	@echo 'make test-libraries the client libraries in Clients with their own tests'
	@echo 'make examples       the example providers in Examples with their suites; make example-swift the one in Swift'
	@echo 'make campaigns      providers of known conduct against every fault profile: no verdict may be wrong (CAMPAIGN_ARGS="--runs 100")'
	@echo 'make soak           hours of mixed traffic: memory stays flat, nothing is lost (SOAK_MINUTES=10; SOAK_ARGS="--help")'
	@echo 'make attacks        attack the admin API: memory, and the time of health checks, beside each attack (ATTACK_ARGS="--only sorts")'
	@echo 'make screenshots    take the screenshots in Images again'
	@echo 'make docs           the documentation as a static site with full-text search: .build/docs'
	@echo 'make asan, tsan     the Swift tests under AddressSanitizer with leak check, under ThreadSanitizer (TEST_ARGS="--filter …")'
	@echo 'make asan-clients   the client tests against a server built with AddressSanitizer; also make tsan-clients'
	@echo 'make fuzz           every fuzz target for ten minutes (FUZZ_SECONDS=60 FUZZ_TARGETS="payloads admin")'
	@echo 'make bench          server CPU per push against nghttpd, queries, waits, memory (BENCH_ARGS="--help" lists what can be varied)'
	@echo 'make bench-chart    draw what make bench has measured: Images/benchmarks.svg'
	@echo 'make dist           tarball, Debian package, wheel, npm package, checksums and SBOM: .build/dist (Linux)'
	@echo 'make test-dist      install and run each package (DIST_ARGS="-k wheel" selects)'
	@echo 'make test-image     build the image as docker build does, in a bare Debian system: many minutes, needs root'
	@echo 'make install        install what is built (PREFIX=/usr/local DESTDIR=); RELEASE=1 installs a program without the toolchain; also make uninstall'
	@echo 'make lint-distribution  check workflows, action, Dockerfile, compose file, the example for Kubernetes and shell scripts'
	@echo 'make format, lint   swift format over all sources'
	@echo 'make clean          remove .build'

# The ports are checked before the build.
run:
	@.ci/preflight ports $(ARGS)
	@.ci/build
	@exec $(program) serve $(ARGS)

build:
	@.ci/build

# A warning is an error here but not in `make run`, so that a newer compiler's new warning does not break that.
build-tests:
	@.ci/build --tests --strict

# The program of the packages, for benchmarks.
build-optimized:
	@.ci/preflight build
	@.ci/packages build
	Distribution/build-program system $(optimized)

test:
	@.ci/preflight build
	@.ci/packages test
	@BUILT=1 .ci/timed lint build-tests test-swift test-languages test-clients test-store

test-quick: build-tests $(clients)/ready
	@BUILT=1 $(MAKE) --no-print-directory test-swift
	$(pytest) --binary $(program) --quick --quiet $(PYTEST_ARGS)

# Hours. Also what only repeats a promise at a larger scale, which APNS_MOCK_ALL_TESTS selects.
test-all: export APNS_MOCK_ALL_TESTS = 1
test-all:
	@.ci/preflight build
	@.ci/packages test
	@.ci/timed lint lint-distribution build-tests
	@BUILT=1 .ci/timed test-swift test-languages example-swift test-clients test-stores asan tsan asan-clients tsan-clients fuzz dist \
	  test-dist test-image campaigns soak

lint:
	$(SWIFT) format lint --strict --parallel --recursive Package.swift Examples/swift/Package.swift Examples/swift/Sources Examples/swift/Tests Fuzz Sources Tests

format:
	$(SWIFT) format --in-place --parallel --recursive Package.swift Examples/swift/Package.swift Examples/swift/Sources Examples/swift/Tests Fuzz Sources Tests

# Prints the failed tests last, so that they are not lost among thousands of lines.
test-swift: $(built_tests)
	@{ $(call swift_tests,.build) $(TEST_ARGS) && echo passed; } >.build/test.log 2>&1; \
	  if tail -n 1 .build/test.log | grep -qx passed; then grep -a 'Test run with' .build/test.log; \
	  else tail -n 40 .build/test.log; printf '\nFailed; all of the output is in .build/test.log:\n'; grep -a '✘' .build/test.log; exit 1; fi

test-clients: $(built) $(clients)/ready
	$(pytest) --binary $(program) $(PYTEST_ARGS)

# The client tests of the inbox with an SQLite file and with PostgreSQL, of which nearly nothing is in memory: for each, another
# third of what runs in memory.
test-store: $(built) $(clients)/ready
	$(clients)/bin/python -m pytest Tests/Clients/inbox -n $(workers) --store sqlite --third 1 --quiet --binary $(program)
	$(clients)/bin/python -m pytest Tests/Clients/inbox -n $(workers) --store postgres --third 2 --quiet --binary $(program)

# All client tests with both databases.
test-stores: $(built) $(clients)/ready
	$(pytest) --store sqlite --binary $(program) $(PYTEST_ARGS)
	$(pytest) --store postgres --binary $(program) $(PYTEST_ARGS)

# The client libraries and the example providers in all languages; those whose toolchain is missing are skipped. What the client
# tests need is installed at the same time, because the longest of these scripts leaves a core idle.
test-languages: $(built)
	@.ci/packages test
	@$(MAKE) --no-print-directory $(clients)/ready >.build/clients.log 2>&1 & installed=$$!; \
	  .ci/test-each $(program) $(libraries) $(example_tests); status=$$?; \
	  wait $$installed || { cat .build/clients.log; exit 1; }; exit $$status

libraries = $(wildcard Clients/*/test)
# The example in Swift compiles dependencies of its own for minutes.
example_tests = $(filter-out Examples/swift/test,$(wildcard Examples/*/test))

test-libraries: $(built)
	@.ci/packages test
	.ci/test-each $(program) $(libraries)

examples: $(built)
	@.ci/packages test
	.ci/test-each $(program) $(example_tests)

example-swift:
	.ci/test-each - Examples/swift/test

campaigns: $(built) $(clients)/ready
	$(clients)/bin/python Tests/Clients/campaigns.py --binary $(program) $(CAMPAIGN_ARGS)

soak: $(built) $(clients)/ready
	$(clients)/bin/python Tests/Clients/soak.py --binary $(program) --minutes $(SOAK_MINUTES) $(SOAK_ARGS)

# The program of the packages, unless PROGRAM is another one.
attacks: $(if $(PROGRAM),,build-optimized) $(clients)/ready
	$(clients)/bin/python Benchmarks/attacks.py --binary $(or $(PROGRAM),$(optimized)) $(ATTACK_ARGS)

screenshots: $(built) $(clients)/ready
	$(clients)/bin/python Tests/Clients/screenshots.py --binary $(program)

# Browsers allow the search only on pages of a server: `python3 -m http.server --directory .build/docs`.
docs: .build/docs-tools/ready
	NO_MKDOCS_2_WARNING=1 .build/docs-tools/bin/python -m mkdocs build --quiet
	@echo 'the documentation: .build/docs/index.html; with its search: python3 -m http.server --bind 127.0.0.1 --directory .build/docs'

.build/docs-tools/ready: Documentation/requirements.txt
	$(PYTHON) -m venv --clear .build/docs-tools
	.build/docs-tools/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# A virtual environment, so that nothing is installed into the system's Python.
$(clients)/ready: Tests/Clients/requirements.txt Documentation/requirements.txt Tests/Clients/requirements-apns2.txt \
    Tests/Clients/requirements-applications.txt .ci/packages
	@.ci/packages test
	$(PYTHON) -m venv --clear $(clients)
	$(clients)/bin/python -m pip install --quiet --disable-pip-version-check --requirement Tests/Clients/requirements.txt \
	  --requirement Documentation/requirements.txt
	# apns2 needs older libraries and an older Python, so it has a folder of its own. Its tests are skipped if this fails.
	-$(clients)/bin/python -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \
	  --target $(clients)/apns2 --requirement Tests/Clients/requirements-apns2.txt
	# The Django applications need an older aioapns.
	-$(clients)/bin/python -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \
	  --target $(clients)/applications --requirement Tests/Clients/requirements-applications.txt
	# Compiles the tests once, before several processes need them.
	@$(clients)/bin/python -m pytest Tests/Clients --collect-only --quiet --quiet >/dev/null || true
	@touch $@

# Sanitized builds have separate folders, because their object files are incompatible with other builds. With the flag, a server
# ends if one of its event loops or cooperative threads waits for its store (`BlockingCheck`).
checks = -Xswiftc -DCHECKS_BLOCKING
asan:
	@.ci/packages build
	$(SWIFT) build --build-tests $(flags) $(checks) --sanitize=address --scratch-path .build/asan
	LSAN_OPTIONS=suppressions=$(CURDIR)/.ci/leaks.supp \
	  $(call swift_tests,.build/asan) $(TEST_ARGS)

# Reports are written to files and printed last, so that they are not lost among thousands of lines of test output: first
# in full, then as a summary.
asan_report = $(CURDIR)/.build/asan/report
tsan_report = $(CURDIR)/.build/tsan/report
race_options = log_path=$(tsan_report) suppressions=$(CURDIR)/.ci/races.supp
show_reports = cat $(1).* 2>/dev/null; \
  grep -hsE "WARNING|ERROR|of size| \#[0-3] |SUMMARY" $(1).* | cut -c -160 | head -n 24
tsan:
	@.ci/packages build
	$(SWIFT) build --build-tests $(flags) $(checks) --sanitize=thread --scratch-path .build/tsan
	@rm -f $(tsan_report)*
	TSAN_OPTIONS="$(race_options)" \
	  $(call swift_tests,.build/tsan) $(TEST_ARGS) || { $(call show_reports,$(tsan_report)); exit 1; }

# The client tests with a sanitized server. They do not see the server's reports, so any report is a failure here. Tests
# marked `serial` measure time and memory, which a sanitizer distorts. No leak check: the server ends with its rules still
# in memory, and LeakSanitizer does not recognize a reference in whose spare bits Swift stores an enum's case.
sanitizer_asan = address
sanitizer_tsan = thread
asan-clients tsan-clients: %-clients: $(clients)/ready
	@.ci/packages build
	$(SWIFT) build --product apns-mock $(flags) $(checks) --sanitize=$(sanitizer_$*) --scratch-path .build/$*
	@rm -f $($*_report)*
	ASAN_OPTIONS="log_path=$(asan_report) detect_leaks=0" TSAN_OPTIONS="$(race_options)" \
	  $(pytest) --binary .build/$*/release/apns-mock -m "not serial" --timeout 300 $(PYTEST_ARGS); status=$$?; \
	  if ls $($*_report).* >/dev/null 2>&1; then $(call show_reports,$($*_report)); exit 1; fi; exit $$status

# For `.ci/run`: the Swift tests whose code runs on several threads, and the client tests that exercise the connection code most.
tsan-threads:
	@$(MAKE) --no-print-directory tsan TEST_ARGS="--filter 'EventLogTests|[.]InboxTests/|WaitingTests|VerificationWaitTests|DeviceWaitTests|SlowClientTests|RecordWriterTests|AdminListenerTests'"
	@$(MAKE) --no-print-directory tsan-clients PYTEST_ARGS="-k 'test_connections.py or test_lifecycle or test_wire_faults or test_tls_faults or test_stream_limits'"

# Our own modules are compiled with the coverage instrumentation that libFuzzer needs, and optimized. With FUZZ_QUICK=1 nothing is
# optimized: the build takes half the time, and each input about five times as long.
fuzz:
	@.ci/packages build
	APNS_MOCK_FUZZ=$(if $(FUZZ_QUICK),,-O) $(SWIFT) build --product Fuzz --sanitize=address --scratch-path .build/asan $(if $(FUZZ_QUICK),$(flags))
	Fuzz/run .build/asan/$(if $(FUZZ_QUICK),release,debug)/Fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# For `.ci/run`.
fuzz-quick:
	@$(MAKE) --no-print-directory fuzz FUZZ_QUICK=1 FUZZ_SECONDS=6

optimized = .build/dist-parts/system/apns-mock
bench: build-optimized
	@.ci/packages bench
	$(PYTHON) Benchmarks/bench.py --binary $(optimized) --json .build/bench.json $(BENCH_ARGS)
	$(PYTHON) Benchmarks/store.py --binary $(optimized) --runs 3 --records 0
	@if [ -x .build/clients/bin/python ]; then .build/clients/bin/python Benchmarks/page.py --binary $(optimized) --json .build/bench-page.json; \
	  else echo "page: skipped, run make .build/clients/ready first"; fi

bench-chart: .build/chart/ready
	.build/chart/bin/python Benchmarks/chart.py

.build/chart/ready: Benchmarks/requirements.txt
	$(PYTHON) -m venv --clear .build/chart
	.build/chart/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

dist:
	@.ci/packages build
	@.ci/packages dist
	@Distribution/dist

test-dist:
	@.ci/packages dist
	@Distribution/test $(DIST_ARGS)

lint-distribution:
	@Distribution/lint

# Runs both stages of the Dockerfile without a container engine.
test-image:
	@.ci/packages dist
	@Distribution/test -m image $(DIST_ARGS)

# Builds nothing without RELEASE, so that `sudo make install` leaves no files of root in .build.
install:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' RELEASE='$(RELEASE)' Distribution/install

uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' Distribution/install --remove

clean:
	rm -rf .build
