# The main targets: `make run` starts the server, `make test` runs all tests.
# `make run ARGS="--apns 0.0.0.0:2197 --rules strict"` passes flags to `apns-mock serve`.

SWIFT ?= swift
PYTHON ?= python3
ARGS ?=
PYTEST_ARGS ?=
TEST_ARGS ?=
SOAK_MINUTES ?= 10
SOAK_ARGS ?=
BENCH_ARGS ?=
DIST_ARGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
# Seconds per fuzzer, and the fuzzers to run; all of them if empty.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?=

# The program that the tests of clients run; set it to test one that is already built, such as that of `make dist`.
PROGRAM ?=
program = $(or $(PROGRAM),.build/release/apns-mock)
built = $(if $(PROGRAM),,build)
clients = .build/clients
# Most client tests wait rather than compute, so more of them run at once than there are cores. `-n0` in PYTEST_ARGS runs
# them one after the other.
workers := $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
pytest = $(clients)/bin/python -m pytest Tests/Clients -n $(workers)
# Warnings are errors here but not in Package.swift, so that a newer compiler's new warning does not break `make run`.
# SwiftPM suppresses the warnings of dependencies.
strict = -Xswiftc -warnings-as-errors

# One test at a time: Foundation's Process, which tests use to start openssl, has crashed in `run` when several threads
# started programs concurrently.
in_turn = --disable-xctest --no-parallel

.DEFAULT_GOAL = help
# Concurrent builds would wait for each other's lock.
.NOTPARALLEL:
.PHONY: help run build test test-swift test-clients test-store test-stores test-libraries examples soak screenshots asan tsan asan-clients tsan-clients fuzz bench \
  bench-chart lint format clean dist test-dist lint-distribution install uninstall

help:
	@echo 'make run            build, start the server (ARGS="…" are flags of apns-mock serve)'
	@echo 'make test           lint, build without warnings, test, drive the server with real clients'
	@echo 'make test-swift     only the Swift tests'
	@echo 'make test-clients   only the client tests (PYTEST_ARGS="-k curl" selects)'
	@echo 'make test-store     the client tests of the inbox with SQLite and with PostgreSQL; make test-stores runs all of them'
	@echo 'make test-libraries the client libraries in Clients with their own tests'
	@echo 'make examples       the example providers in Examples with their suites, one for each language'
	@echo 'make soak           hours of mixed traffic: memory stays flat, nothing is lost (SOAK_MINUTES=10; SOAK_ARGS="--help")'
	@echo 'make build          release build: $(program)'
	@echo 'make screenshots    take the screenshots in Images again'
	@echo 'make asan, tsan     the Swift tests under AddressSanitizer with leak check, under ThreadSanitizer (TEST_ARGS="--filter …")'
	@echo 'make asan-clients   the client tests against a server built with AddressSanitizer; also make tsan-clients'
	@echo 'make fuzz           every fuzz target for ten minutes (FUZZ_SECONDS=60 FUZZ_TARGETS="payloads admin")'
	@echo 'make bench          server CPU per push against nghttpd, queries, waits, memory (BENCH_ARGS="--help" lists what can be varied)'
	@echo 'make bench-chart    draw what make bench has measured: Images/benchmarks.svg'
	@echo 'make dist           tarball, Debian package, wheel, npm package, checksums and SBOM: .build/dist (Linux)'
	@echo 'make test-dist      install and run each package (DIST_ARGS="-k wheel" selects)'
	@echo 'make install        install what make dist built (PREFIX=/usr/local DESTDIR=); also make uninstall'
	@echo 'make lint-distribution  check workflows, action, Dockerfile, compose file and shell scripts'
	@echo 'make format, lint   swift format over all sources'
	@echo 'make clean          remove .build'

run: build
	@exec $(program) serve $(ARGS)

build:
	@.ci/packages build
	flags=$$(.ci/release-flags) && $(SWIFT) build $$flags --product apns-mock

test: lint test-swift test-libraries examples test-store test-clients

lint:
	$(SWIFT) format lint --strict --parallel --recursive Package.swift Examples/swift/Package.swift Examples/swift/Sources Examples/swift/Tests Fuzz Sources Tests

format:
	$(SWIFT) format --in-place --parallel --recursive Package.swift Examples/swift/Package.swift Examples/swift/Sources Examples/swift/Tests Fuzz Sources Tests

# Prints the failed tests last, so that they are not lost among thousands of lines.
test-swift:
	@.ci/packages build
	$(SWIFT) build --build-tests $(strict)
	@{ $(SWIFT) test $(in_turn) $(strict) && echo passed; } 2>&1 | tee .build/test.log; \
	  tail -n 1 .build/test.log | grep -qx passed || { printf '\nFailed:\n'; grep -a '✘' .build/test.log; exit 1; }

test-clients: $(built) $(clients)/ready
	$(pytest) --binary $(program) $(PYTEST_ARGS)

# The client tests of the inbox with an SQLite file and with PostgreSQL; nearly nothing of the inbox is in memory.
test-store: $(built) $(clients)/ready
	$(clients)/bin/python -m pytest Tests/Clients/inbox -n $(workers) --store sqlite --binary $(program)
	$(clients)/bin/python -m pytest Tests/Clients/inbox -n $(workers) --store postgres --binary $(program)

# All client tests with both, and the long ones of the stores, which choose a store themselves, once.
test-stores: $(built) $(clients)/ready
	APNS_MOCK_LONG_TESTS=1 $(pytest) --store sqlite --binary $(program) $(PYTEST_ARGS)
	$(pytest) --store postgres --binary $(program) $(PYTEST_ARGS)

# The client libraries and the example providers in all languages; those whose toolchain is missing are skipped.
test-libraries: $(built)
	@.ci/packages test
	.ci/test-each Clients $(program)

examples: $(built)
	@.ci/packages test
	.ci/test-each Examples $(program)

soak: build $(clients)/ready
	$(clients)/bin/python Tests/Clients/soak.py --binary $(program) --minutes $(SOAK_MINUTES) $(SOAK_ARGS)

screenshots: build $(clients)/ready
	$(clients)/bin/python Tests/Clients/screenshots.py --binary $(program)

# A virtual environment, so that nothing is installed into the system's Python.
$(clients)/ready: Tests/Clients/requirements.txt Tests/Clients/requirements-apns2.txt \
    Tests/Clients/requirements-applications.txt .ci/packages
	@.ci/packages test
	$(PYTHON) -m venv --clear $(clients)
	$(clients)/bin/python -m pip install --quiet --disable-pip-version-check --requirement Tests/Clients/requirements.txt
	# apns2 needs older libraries and an older Python, so it has a folder of its own. Its tests are skipped if this fails.
	-$(clients)/bin/python -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \
	  --target $(clients)/apns2 --requirement Tests/Clients/requirements-apns2.txt
	# The Django applications need an older aioapns.
	-$(clients)/bin/python -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \
	  --target $(clients)/applications --requirement Tests/Clients/requirements-applications.txt
	@touch $@

# Sanitized builds have separate folders, because their object files are incompatible with other builds.
asan:
	@.ci/packages build
	$(SWIFT) build --build-tests --sanitize=address --scratch-path .build/asan
	LSAN_OPTIONS=suppressions=$(CURDIR)/.ci/leaks.supp \
	  $(SWIFT) test --skip-build --sanitize=address --scratch-path .build/asan $(in_turn) $(TEST_ARGS)

# Reports are written to files and printed last, so that they are not lost among thousands of lines of test output: first
# in full, then as a summary.
asan_report = $(CURDIR)/.build/asan/report
tsan_report = $(CURDIR)/.build/tsan/report
race_options = log_path=$(tsan_report) suppressions=$(CURDIR)/.ci/races.supp
show_reports = cat $(1).* 2>/dev/null; \
  grep -hsE "WARNING|ERROR|of size| \#[0-3] |SUMMARY" $(1).* | cut -c -160 | head -n 24
tsan:
	@.ci/packages build
	$(SWIFT) build --build-tests --sanitize=thread --scratch-path .build/tsan
	@rm -f $(tsan_report)*
	TSAN_OPTIONS="$(race_options)" \
	  $(SWIFT) test --skip-build --sanitize=thread --scratch-path .build/tsan $(in_turn) $(TEST_ARGS) || { $(call show_reports,$(tsan_report)); exit 1; }

# The client tests with a sanitized server. They do not see the server's reports, so any report is a failure here. Tests
# marked `serial` measure time and memory, which a sanitizer distorts. No leak check: the server ends with its rules still
# in memory, and LeakSanitizer does not recognize a reference in whose spare bits Swift stores an enum's case.
sanitizer_asan = address
sanitizer_tsan = thread
asan-clients tsan-clients: %-clients: $(clients)/ready
	@.ci/packages build
	$(SWIFT) build --product apns-mock --sanitize=$(sanitizer_$*) --scratch-path .build/$*
	@rm -f $($*_report)*
	ASAN_OPTIONS="log_path=$(asan_report) detect_leaks=0" TSAN_OPTIONS="$(race_options)" \
	  $(pytest) --binary .build/$*/debug/apns-mock -m "not serial" --timeout 300 $(PYTEST_ARGS); status=$$?; \
	  if ls $($*_report).* >/dev/null 2>&1; then $(call show_reports,$($*_report)); exit 1; fi; exit $$status

# Uses the folder of the AddressSanitizer tests, where the dependencies are already built with the right flags. Our own
# modules are rebuilt with the coverage instrumentation that libFuzzer needs.
fuzz:
	@.ci/packages build
	APNS_MOCK_FUZZ=1 $(SWIFT) build --product Fuzz --sanitize=address --scratch-path .build/asan
	Fuzz/run .build/asan/debug/Fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

bench: build
	@.ci/packages bench
	$(PYTHON) Benchmarks/bench.py --binary $(program) --json .build/bench.json $(BENCH_ARGS)
	$(PYTHON) Benchmarks/store.py --binary $(program) --runs 3 --records 0
	@if [ -x .build/clients/bin/python ]; then .build/clients/bin/python Benchmarks/page.py --binary $(program) --json .build/bench-page.json; \
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

# Neither builds anything, so that `sudo make install` leaves no files of root in .build.
install:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' Distribution/install

uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' Distribution/install --remove

clean:
	rm -rf .build
