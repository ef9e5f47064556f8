"""The results, as a table for people and as JSON for programs."""

import dataclasses
import datetime
import os
import pathlib
import platform
import statistics
import subprocess

UNITS = {"cpu_us": "us", "loops_us": "us", "per_second": "/s"}
# A wider spread of ratios indicates that the machine was doing other work.
WIDE = 1.2
# The maximum number of bytes a recorded push may use beyond its own data.
MOST_BYTES = 250


@dataclasses.dataclass
class Row:
    name: str
    about: str
    unit: str = ""
    # Each is a spread: min, median, max.
    ours: dict = None
    theirs: dict = None
    ratio: dict = None
    # Applies to the median of the ratio, or, with `is_absolute`, to the median of `ours`.
    target: float = None
    is_absolute: bool = False
    is_least: bool = False
    # The reason why there are no figures.
    skipped: str = None
    failed: str = None
    details: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def duel(cls, workload, pushes, ours, theirs):
        """Returns a row for each of the workload's figures."""
        details = {"pushes": pushes, "runs": len(ours)}
        for name, runs in (("ours", ours), ("theirs", theirs)):
            # nghttpd's thread names are not known here, so it has no figure for event loops.
            details[name] = {figure: spread(run[figure] for run in runs) for figure in UNITS if runs[0][figure]}
        return [
            cls(workload.name if number == 0 else f"{workload.name}, {UNITS[figure]}", workload.about, UNITS[figure],
                details["ours"][figure], details["theirs"][figure],
                spread(a[figure] / b[figure] for a, b in zip(ours, theirs)), workload.target if number == 0 else None,
                is_least=figure == "per_second", details=details | {"compared": figure})
            for number, figure in enumerate(workload.figures)]

    @classmethod
    def growth(cls, workload, pushes, parts, last, bytes_each, own_bytes):
        """Returns a row that compares the last part with the first, by the costs of runs of the grown server and of
        a young one, and a row for the memory per record.
        """
        old, young = zip(*last)
        details = {"pushes": pushes, "parts_cpu_us": [spread(part) for part in (*parts, old)]}
        time = cls(
            workload.name, workload.about, "us", spread(old), spread(young), spread(a / b for a, b in last),
            workload.target, details=details)
        memory = cls(
            f"{workload.name}-memory", f"bytes a record takes beyond its own {own_bytes}", "B",
            spread([bytes_each - own_bytes]), target=MOST_BYTES, is_absolute=True,
            details={"pushes": pushes, "resident_bytes": round(bytes_each, 1), "own_bytes": own_bytes})
        return [time, memory]

    @classmethod
    def without_figures(cls, workload, **reason):
        return cls(workload.name, workload.about, **reason)

    @property
    def verdict(self):
        if self.failed or self.skipped:
            return "failed" if self.failed else "skipped"
        if self.target is None:
            return ""
        value = (self.ours if self.is_absolute else self.ratio)["median"]
        if self.is_least:
            return "ok" if value >= self.target else "below"
        return "ok" if value <= self.target else "above"

    @property
    def is_wide(self):
        return self.ratio is not None and self.ratio["max"] > WIDE * self.ratio["min"]

    def line(self):
        if self.failed or self.skipped:
            return f"{self.name:16}{self.verdict}: {(self.failed or self.skipped).splitlines()[0]}"
        digits = 2 if self.unit == "us" else 0
        sides = [f"{side['median']:.{digits}f} {self.unit}" if side else "" for side in (self.ours, self.theirs)]
        ratio = "".join(f"{self.ratio[part]:7.2f}" if self.ratio else " " * 7 for part in ("min", "median", "max"))
        bound = "" if self.target is None else f"{'>=' if self.is_least else '<='} {self.target:g}"
        return f"{self.name:16}{sides[0]:>11}{sides[1]:>11}  {ratio}  {bound:>7}  {self.verdict}".rstrip()

    def json(self):
        keys = ("name", "about", "unit", "ours", "theirs", "ratio", "target", "skipped", "failed", "details")
        return {key: getattr(self, key) for key in keys} | {"verdict": self.verdict, "wide_spread": self.is_wide}


def spread(values):
    values = sorted(values)
    return {"min": round(values[0], 3), "median": round(statistics.median(values), 3), "max": round(values[-1], 3)}


HEAD = f"{'':16}{'ours':>11}{'theirs':>11}  {'min':>7}{'median':>7}{'max':>7}  {'target':>7}"


def closing(rows):
    """Yields the notes printed below the table."""
    wide = [row.name for row in rows if row.is_wide]
    if wide:
        yield f"wide spread, the machine was busy, repeat when it is idle: {', '.join(wide)}"
    missed = [row.name for row in rows if row.verdict in ("above", "below")]
    if missed:
        yield f"target missed: {', '.join(missed)}"


def circumstances():
    """Returns when and on what machine the measurement runs."""
    processors = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.split(":", 1)[1].strip() for line in processors if line.startswith("model name"))
    return {
        "began": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cpu": next(models, platform.machine()), "cores": len(os.sched_getaffinity(0)),
                    "kernel": platform.release(), "load": round(os.getloadavg()[0], 2)}}


def version(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
