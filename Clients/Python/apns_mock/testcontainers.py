"""A module for Testcontainers: apns-mock in a container. It needs the package `testcontainers`.

    from apns_mock.testcontainers import ApnsMockContainer

    with ApnsMockContainer() as container:
        apns = container.get_client()
        send_welcome(apns.settings)  # your code
        apns.wait(count=1, accepted=True)
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Optional

from testcontainers.core.container import DockerContainer

from .client import Client, Duration, connect, seconds
from .errors import StartError

APNS_PORT = 2197
ADMIN_PORT = 8197
KEY_ID = "MOCKKEY001"
TEAM_ID = "MOCKTEAM01"


class ApnsMockContainer(DockerContainer):
    """A container that runs `apns-mock serve`. It is ready when `start` returns."""

    def __init__(self, image: str = "apns-mock", *, timeout: Duration = 60.0, **options: Any) -> None:
        """`image` is the image of the repository's Dockerfile; `timeout` the time until it is ready."""
        super().__init__(image, **options)
        self._timeout = seconds(timeout)
        self._arguments: list[str] = []
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        self.with_exposed_ports(APNS_PORT, ADMIN_PORT)

    def with_arguments(self, *arguments: str) -> ApnsMockContainer:
        """Adds flags of `apns-mock serve`, such as "--rules", "strict"."""
        self._arguments = list(arguments)
        self.with_command(["serve", *arguments])
        return self

    def start(self) -> ApnsMockContainer:
        """Starts the container, and waits until the server is ready.

        Raises StartError after the timeout.
        """
        self._add_host(self.get_docker_client().host())
        super().start()
        self._wait_until_ready()
        self._folder = tempfile.TemporaryDirectory(prefix="apns-mock-")
        for name in ("ca.pem", f"AuthKey_{KEY_ID}.p8"):
            self._copy(f"/certs/{name}")
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stops the container, and removes the copies of its certificate and key."""
        super().stop(force, delete_volume)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def get_client(self) -> Client:
        """Returns a client of the server, with the settings that a provider on this machine needs."""
        if self._folder is None:
            raise StartError("The container does not run: call start(), or use it in a `with` statement.")
        return connect({
            "APNS_MOCK_ADMIN": self._address(ADMIN_PORT), "APNS_MOCK_APNS": self._address(APNS_PORT),
            "APNS_MOCK_CA": f"{self._folder.name}/ca.pem", "APNS_MOCK_KEY": f"{self._folder.name}/AuthKey_{KEY_ID}.p8",
            "APNS_MOCK_KEY_ID": KEY_ID, "APNS_MOCK_TEAM_ID": TEAM_ID})

    def _add_host(self, host: str) -> None:
        """Adds the name of the engine's host to the names in the certificate, and to those that the admin API allows."""
        for flag, variable in (("--allow-host", "APNS_MOCK_ALLOW_HOST"), ("--san", "APNS_MOCK_SAN")):
            # A flag overrides the variable.
            if any(argument.split("=")[0] == flag for argument in self._arguments):
                self.with_arguments(*self._arguments, flag, host)
            else:
                self.with_env(variable, ",".join(filter(None, [self.env.get(variable), host])))

    def _address(self, port: int) -> str:
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(port)}"

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with urllib.request.urlopen(f"http://{self._address(ADMIN_PORT)}/readyz", timeout=5):
                    return
            except OSError as error:
                if time.monotonic() > deadline:
                    output = b"".join(self.get_logs()).decode(errors="replace")
                    super().stop()
                    raise StartError(f"The server was not ready in time ({error}): {output}") from error
            time.sleep(0.05)

    def _copy(self, path: str) -> None:
        chunks, _ = self.get_wrapped_container().get_archive(path)
        assert self._folder is not None
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            file = archive.extractfile(archive.getmembers()[0])
            assert file is not None
            (Path(self._folder.name) / Path(path).name).write_bytes(file.read())
