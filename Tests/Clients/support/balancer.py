"""A TCP load balancer in front of several servers, and a TCP proxy to a database that can be interrupted."""

import asyncio
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

from support.documents import PAGES

PACKAGE = "haproxy is not on this machine: apt-get install haproxy"

CONFIGURATION = """
global
  maxconn 500
defaults
  mode tcp
  timeout connect 5s
  timeout client 2m
  timeout server 2m
  retries 3
  option redispatch 1
listen apns
  balance roundrobin
  bind fd@{listener}
"""


def program():
    """Returns the path of haproxy, which Debian keeps outside the path of ordinary users."""
    found = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
    assert found, PACKAGE
    return found


class Proxy:
    """A TCP proxy to another port of 127.0.0.1. While it is interrupted, nothing arrives, and nothing is lost."""

    def __init__(self, port, process):
        self.port = port
        self._process = process

    def interrupt(self):
        self._process.send_signal(signal.SIGSTOP)

    def restore(self):
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def proxy_to(port):
    """Yields a `Proxy` to a port."""
    with _haproxy([port]) as found:
        yield Proxy(*found)


@contextlib.contextmanager
def slow_proxy_to(far_port, delay):
    """Yields the port of a TCP proxy to a port of 127.0.0.1 over which all data arrives so many seconds later."""
    async def forward(reader, writer):
        try:
            while data := await reader.read(1 << 16):
                await asyncio.sleep(delay)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def accept(reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", far_port)
        await asyncio.gather(forward(reader, far_writer), forward(far_reader, writer))

    async def run():
        stopped = asyncio.Event()
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        started.set_result((server.sockets[0].getsockname()[1], asyncio.get_running_loop(), stopped))
        await stopped.wait()
        server.close()

    started = concurrent.futures.Future()
    # In the end, `asyncio.run` ends what is still open.
    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    port, loop, stopped = started.result(10)
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()


@contextlib.contextmanager
def documented_balancer(first, second):
    """Distributes connections over two servers with the configuration of the documentation; yields its port for providers."""
    text = (PAGES / "Store.md").read_text()
    configuration = re.search(r"^```\n(defaults\n.*?)^listen admin\n.*?^```$", text, re.MULTILINE | re.DOTALL)[1]
    for address, server in (("10.0.0.1", first), ("10.0.0.2", second)):
        documented = f"{address}:2197 check port 8197"
        assert documented in configuration
        configuration = configuration.replace(documented, f"127.0.0.1:{server.port} check port {server.admin_port}")
    assert "bind :2197" in configuration
    with _haproxy_with(lambda listener: configuration.replace("bind :2197", f"bind fd@{listener}")) as (port, _):
        yield port


def _haproxy(ports):
    """Distributes connections over ports of 127.0.0.1; yields its own port, and its process."""
    return _haproxy_with(lambda listener: CONFIGURATION.format(listener=listener) + "".join(
        f"  server mock{number} 127.0.0.1:{port}\n" for number, port in enumerate(ports)))


@contextlib.contextmanager
def _haproxy_with(configuration_for):
    """Runs haproxy with the configuration for the descriptor of a listener; yields its port, and its process."""
    with tempfile.TemporaryDirectory(prefix="apns-mock-test-") as folder, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        configuration = pathlib.Path(folder) / "haproxy.cfg"
        configuration.write_text(configuration_for(listener.fileno()))
        setpriv = shutil.which("setpriv")
        # On Linux it ends with this process.
        prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        process = subprocess.Popen(
            [*prefix, program(), "-db", "-f", str(configuration)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, pass_fds=[listener.fileno()])
        try:
            yield listener.getsockname()[1], process
            assert process.poll() is None, f"haproxy has ended: {process.stderr.read().decode()}"
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
