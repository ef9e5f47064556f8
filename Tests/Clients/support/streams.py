"""Streams of what happens on devices."""

import json
import subprocess

from support.server import clean_environment


class NotificationStream:
    """The events of a device, or with a query of all devices, as curl prints them."""

    def __init__(self, server, device=None, query=""):
        path = f"{device}/notifications" if device else "notifications"
        url = f"http://{server.admin_host}:{server.admin_port}/api/v1/devices/{path}/stream{query}"
        self.process = subprocess.Popen(
            ["curl", "-sN", url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=clean_environment())
        assert self.process.stdout.readline() == f": apns-mock notifications of {device or 'all devices'}\n"
        self.process.stdout.readline()

    def next(self):
        """Returns the name and the data of the next event."""
        while not (line := self.process.stdout.readline()).startswith("event: "):
            assert line, "the stream has ended"
        return line[7:-1], json.loads(self.process.stdout.readline().removeprefix("data: "))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
