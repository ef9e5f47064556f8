"""The results, as a table for people and as JSON for programs."""

import dataclasses
import datetime
import os
import pathlib
import platform
import statistics
import subprocess

from workloads import Nghttpd

UNITS = {"cpu_us": "us", "loops_us": "us", "per_second": "/s"}
# A wider spread of ratios indicates that the machine was doing other work.
WIDE = 1.2


@dataclasses.dataclass
class Row:
    name: str
    about: str
    unit: str = ""
    # Each is a spread: min, median, max.
    ours: dict = None
    theirs: dict = None
    ratio: dict = None
    # The other server of a ratio: "nghttpd" or "apns-mock".
    compared_with: str = None
    # Applies to the median of the ratio, or, with `is_absolute`, to the median of `ours`.
    target: float = None
    is_absolute: bool = False
    is_least: bool = False
    # The reason why there are no figures.
    skipped: str = None
    failed: str = None
    # The reason why the target is missed whatever the figures are.
    missed: str = None
    is_measured_again: bool = False
    details: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def duel(cls, workload, ours, theirs):
        """Returns a row for each of the workload's figures."""
        details = {"pushes": ours[0]["pushes"], "runs": len(ours)}
        other = "nghttpd" if isinstance(workload.theirs, Nghttpd) else "apns-mock"
        for name, runs in (("ours", ours), ("theirs", theirs)):
            # nghttpd's thread names are not known here, so it has no figure for event loops.
            details[name] = {figure: spread(run[figure] for run in runs) for figure in UNITS if runs[0][figure]}
        return [
            cls(workload.name if number == 0 else f"{workload.name}, {UNITS[figure]}", workload.about, UNITS[figure],
                details["ours"][figure], details["theirs"][figure],
                spread(a[figure] / b[figure] for a, b in zip(ours, theirs)), other, target,
                is_least=figure == "per_second", details=details | {"compared": figure})
            for number, (figure, target) in enumerate(zip(workload.figures, workload.targets))]

    @classmethod
    def absolute(cls, name, about, unit, values, target, **details):
        """Returns a row whose target is one for our figure, and not for a ratio."""
        return cls(name, about, unit, spread(values), target=target, is_absolute=True,
                   details=details | {"runs": len(values)})

    @classmethod
    def without_figures(cls, workload, **reason):
        return cls(workload.name, workload.about, **reason)

    @property
    def judged(self):
        """The spread to which the target applies."""
        return self.ours if self.is_absolute else self.ratio

    @property
    def verdict(self):
        if self.failed or self.skipped:
            return "failed" if self.failed else "skipped"
        if self.target is None:
            return ""
        if self.is_least:
            return "ok" if self.judged["median"] >= self.target and not self.missed else "below"
        return "ok" if self.judged["median"] <= self.target and not self.missed else "above"

    @property
    def is_wide(self):
        """Whether the runs differ so much that the median may be wrong; for an absolute figure only if the target is
        between them, because small ones vary more.
        """
        if self.judged is None or self.judged["max"] <= WIDE * self.judged["min"]:
            return False
        return not self.is_absolute or self.judged["min"] <= self.target < self.judged["max"]

    @property
    def width(self):
        return self.judged["max"] / max(self.judged["min"], 1e-9) if self.judged else float("inf")

    def line(self):
        if self.failed or self.skipped:
            return f"{self.name:20}{self.verdict}: {(self.failed or self.skipped).splitlines()[0]}"
        digits = {"us": 2, "ms": 2, "KB": 1, "MB": 1}.get(self.unit, 0)
        sides = [f"{side['median']:.{digits}f} {self.unit}" if side else "" for side in (self.ours, self.theirs)]
        precision = 2 if self.ratio else digits
        spread = "".join(f"{self.judged[part]:8.{precision}f}" for part in ("min", "median", "max"))
        bound = "" if self.target is None else f"{'>=' if self.is_least else '<='} {self.target:g}"
        notes = "; ".join(filter(None, (
            self.verdict + (f", {self.missed}" if self.missed else ""), self.is_measured_again and "measured again")))
        return f"{self.name:20}{sides[0]:>11}{sides[1]:>11}  {spread}  {bound:>7}  {notes}".rstrip()

    def json(self):
        keys = ("name", "about", "unit", "ours", "theirs", "ratio", "compared_with", "target", "is_least", "skipped",
                "failed", "missed", "details")
        return {key: getattr(self, key) for key in keys} | {
            "verdict": self.verdict, "wide_spread": self.is_wide, "measured_again": self.is_measured_again}


def spread(values):
    values = sorted(values)
    return {"min": round(values[0], 3), "median": round(statistics.median(values), 3), "max": round(values[-1], 3)}


HEAD = f"{'':20}{'ours':>11}{'theirs':>11}  {'min':>8}{'median':>8}{'max':>8}  {'target':>7}"


def closing(rows):
    """Yields the notes printed below the table."""
    again = [row.name for row in rows if row.is_measured_again]
    if again:
        yield f"measured again because of a wide spread, the narrower result is shown: {', '.join(again)}"
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
