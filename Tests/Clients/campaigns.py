"""Runs providers of known conduct against fault profiles, and compares the server's verdicts with what happened between the
two: `make campaigns`. Exits with 1 if a verdict was wrong.
"""

import argparse
import collections
import functools
import itertools
import multiprocessing
import multiprocessing.util
import pathlib
import signal
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support.conducts.carriers import go_program, missing  # noqa: E402
from support.conducts.runner import Run, all_runs, perform  # noqa: E402
from support.server import Server  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".build/campaigns"
start = server = None  # of a worker process: how its server is started, and that server


def begin(binary, folder):
    """Starts the server of a worker process, which ends with it."""
    global start, server
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends its workers
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start = functools.partial(Server, binary, pathlib.Path(folder) / "certs")
    server = start()
    multiprocessing.util.Finalize(None, lambda: server.kill(), exitpriority=1)


def work(run):
    """Returns a run and its report, or the text of the error that prevented one."""
    global server
    try:
        return run, perform(server, run, FOLDER)
    except Exception:
        error = traceback.format_exc()
        if server.process.poll() is not None:
            error += f"\nThe server has ended:\n{server.log()[-4000:]}"
            server = start()
        return run, error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=ROOT / ".build/release/apns-mock", help="the program (default: that of make build)")
    parser.add_argument("--runs", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--skip", type=int, default=0, help="how many runs to leave out first")
    parser.add_argument("--only", default="", help="only runs whose name contains this text, such as goaway-storm/ or /curl/")
    parser.add_argument("--workers", type=int, default=4, help="how many at once, each with a server of its own (default 4)")
    parser.add_argument("--quiet", action="store_true", help="without the time lines of failed runs")
    parser.add_argument("--list", action="store_true", help="only list the runs")
    parser.add_argument("run", nargs="*", help="PROFILE/CONDUCT/CARRIER/SEED: only these, with their time lines")
    arguments = parser.parse_args()
    try:
        runs = [Run.of(text) for text in arguments.run] or list(itertools.islice(
            all_runs(arguments.only, missing()), arguments.skip, arguments.skip + arguments.runs))
    except ValueError as error:
        parser.error(str(error))
    if not runs:
        parser.error(f"no run's name contains {arguments.only}; --list lists the runs")
    if arguments.list:
        print(*runs, sep="\n")
        return 0
    if not arguments.run and missing():
        print(f"without {', '.join(missing())}, which this machine does not have")
    if any(run.carrier == "go" for run in runs):
        go_program(FOLDER)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends the workers
    totals, failed = collections.Counter(), []
    with tempfile.TemporaryDirectory(prefix="apns-mock-campaigns-") as folder:
        Server(arguments.binary, pathlib.Path(folder) / "certs").stop()  # makes the certificates
        with multiprocessing.Pool(min(arguments.workers, len(runs)), begin, (arguments.binary, folder)) as pool:
            for count, (run, report) in enumerate(pool.imap_unordered(work, runs), 1):
                if isinstance(report, str):
                    failed.append(run)
                    show(f"{run} could not be run: {report}\n")
                else:
                    totals.update(report.totals)
                    if report.disagreements or arguments.run:
                        show_report(report, arguments)
                    if report.disagreements:
                        failed.append(run)
                progress(f"{count} of {len(runs)} runs, {len(failed)} failed, {run}")
            pool.close()
            pool.join()
    progress("")
    print(f"{len(runs)} runs: " + ", ".join(f"{count} {name}" for name, count in totals.items()))
    for run in failed:
        print(f"failed: make campaigns CAMPAIGN_ARGS={run}")
    return 1 if failed else 0


def show_report(report, arguments):
    lines = [str(report.run), *(f"  {line}" for line in report.disagreements)]
    if not arguments.quiet:
        lines += ["  frames (--> from the client, <-- from the server) and the server's record of each request:", report.timelines]
    if report.disagreements:
        lines.append(f"  repeat: make campaigns CAMPAIGN_ARGS={report.run}\n")
    show("\n".join(lines))


def show(text):
    progress("")
    print(text, flush=True)


def progress(text):
    """Replaces the previous progress line if stderr is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
