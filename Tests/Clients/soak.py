"""Soaks a server in mixed traffic: `make soak SOAK_MINUTES=60`. Exits with 1 if anything was wrong."""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support.attack import MEBIBYTE  # noqa: E402
from support.soak import Soak  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=ROOT / ".build/release/apns-mock", help="the program (default: that of make build)")
    parser.add_argument("--minutes", type=float, default=10, help="how long (default 10)")
    parser.add_argument("--rate", type=int, default=80, help="pushes a second, about (default 80)")
    parser.add_argument("--seed", type=int, help="of faults and traffic (default: drawn, and printed)")
    parser.add_argument("--growth", type=int, default=16, help="MiB that memory may grow after warming up (default 16)")
    parser.add_argument("--most", type=int, default=192, help="MiB that memory may reach (default 192)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="apns-mock-soak-certs-") as certs:
        soak = Soak(
            pathlib.Path(arguments.binary).resolve(), certs, seconds=arguments.minutes * 60, rate=arguments.rate,
            seed=arguments.seed, growth=arguments.growth * MEBIBYTE, limit=arguments.limit * MEBIBYTE, report_progress=show)
        print(f"seed {soak.seed}", flush=True)
        failures = soak.run()
    show("")
    for line in [*soak.report(), *(f"FAILED: {failure}" for failure in failures)]:
        print(line)
    return 1 if failures else 0


def show(text):
    """Replaces the previous progress line if stderr is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
