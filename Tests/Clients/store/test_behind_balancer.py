"""An active server and a standby behind a TCP load balancer with the documented configuration: clients reach the active one."""

import concurrent.futures
import contextlib
import secrets
import threading

import pytest

from support import stores
from support.balancer import documented_balancer
from support.failing_stores import ids
from support.server import Server, wait_until
from support.wire import Closed, connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds


def test_a_rolling_restart_loses_no_push(binary, certs, inbox):
    """Each server is stopped and replaced while clients push."""
    flags = stores.flags(inbox, "--durable", "answer", memory_records=8)
    active, standby = Server(binary, certs, *flags), Server(binary, certs, *flags, role="standby")
    acknowledged, over = [], threading.Event()
    ports = [(one.port, one.admin_port) for one in (active, standby)]

    def provide(port):
        while not over.is_set():
            with contextlib.suppress(Closed, OSError), connect(active, port=port) as wire:
                wire.settings()
                for _ in range(200):
                    response = wire.push(push_headers(active, secrets.token_hex(32)))
                    if response.status == 200:
                        acknowledged.append(response.header("apns-id"))
            over.wait(0.05)

    try:
        with documented_balancer(active, standby) as port, concurrent.futures.ThreadPoolExecutor(4) as pool:
            providing = [pool.submit(provide, port) for _ in range(4)]
            try:
                for _ in range(2):
                    count = len(acknowledged)
                    wait_until(lambda: len(acknowledged) > count + 100, "pushes are answered")
                    (port_of_active, admin), old = ports[0], active
                    ports.reverse()
                    assert old.stop() == 0, old.log()[-2000:]
                    standby.await_role("active")
                    active, standby = standby, Server(
                        binary, certs, *flags, apns=(f"127.0.0.1:{port_of_active}",), admin=f"127.0.0.1:{admin}",
                        role="standby")
                count = len(acknowledged)
                wait_until(lambda: len(acknowledged) > count + 100, "pushes are answered")
            finally:
                over.set()
            for one in providing:
                one.result(30)
        found = ids(active)
        assert len(found) == len(set(found)) and set(acknowledged) <= set(found)
    finally:
        for server in (active, standby):
            server.kill()
