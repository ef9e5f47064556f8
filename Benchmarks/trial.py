"""What a measurement needs: cores, a folder with certificates, and servers that are stopped at its end."""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import tempfile

from loads import Load
from servers import MockProcess, NghttpdProcess
from workloads import Mock


@dataclasses.dataclass
class Place:
    """The machine's cores and the processes they are assigned to."""

    server: set
    load: set
    reader: set

    @classmethod
    def of(cls, workload):
        cores = sorted(os.sched_getaffinity(0))
        if workload.has_wide_server and len(cores) >= 4:
            return cls(set(cores[:2]), set(cores[3:]) if workload.ours.readers else set(cores[2:]), {cores[2]})
        # With a third core, readers disturb neither the server nor the load generator.
        return cls({cores[0]}, {cores[-1]}, {cores[1]})


class Trial(contextlib.ExitStack):
    """A context whose end stops the servers and removes the folder."""

    def __init__(self, workload, runs, binary, progress):
        super().__init__()
        self.workload, self.runs, self.binary, self.progress = workload, runs, binary, progress
        self.place = Place.of(workload)

    def __enter__(self):
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory(prefix="apns-mock-bench-")))
        subprocess.run([self.binary, "certs", "--certs", self.folder / "Certs"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return self

    def start(self, side, name, cores=None):
        cores = cores or self.place.server
        if getattr(side, "has_upstream", False):
            upstream = self.start(Mock(), f"{name}-upstream", self.place.load)
            side = dataclasses.replace(side, flags=(
                *side.flags, "--upstream", f"https://localhost:{upstream.port}", "--upstream-ca", self.folder / "Certs/ca.pem"))
        if isinstance(side, Mock):
            server = MockProcess(side, name, self.binary, self.folder, cores)
        else:
            server = NghttpdProcess(side, self.workload.push.paths, self.folder, cores)
        self.callback(server.stop)
        server.get_ready()
        return server

    def load(self):
        return Load(self.workload.push, self.workload.pushes, self.binary, self.folder, self.place.load)
