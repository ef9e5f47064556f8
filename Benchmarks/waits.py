"""Open requests for `GET /pushes/wait`."""

import itertools
import json
import select
import socket
import time

from servers import BadRun

PAYLOAD = b'{"aps":{"alert":"hello"}}'
# After this many requests, the server's refusals are looked for.
PORTION = 100


class Waits:
    """Waits on connections of their own, each for a push to a device of its own, until the end of the `with` block."""

    def __init__(self, server, count):
        self.port, self.waits = server.admin_port, []
        after = server.mark()
        for number in range(1, count + 1):
            wait = socket.create_connection(("127.0.0.1", self.port), timeout=20), f"{number:064x}"
            self.waits.append(wait)
            ask(*wait, after)
            # The server answers a wait that it refuses at once.
            if (number % PORTION == 0 or number == count) and self.drop_refused(20):
                while self.drop_refused(500):
                    pass
                break
        if not self.waits:
            raise BadRun("the server allows no waits")
        self.opened, self.turns = len(self.waits), itertools.cycle(self.waits)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection, _ in self.waits:
            connection.close()

    def drop_refused(self, milliseconds):
        """Closes those of the newest waits that the server has answered; returns whether there were any."""
        newest = {connection.fileno(): (connection, device) for connection, device in self.waits[-PORTION:]}
        poll = select.poll()
        for descriptor in newest:
            poll.register(descriptor, select.POLLIN)
        refused = [newest[descriptor] for descriptor, _ in poll.poll(milliseconds)]
        for wait in refused:
            self.waits.remove(wait)
            wait[0].close()
        return bool(refused)

    def delay(self, provider, token):
        """Sends a push for the next wait, and opens the wait again.

        Returns: the seconds from the first byte of the push's response to the first byte of the wait's response; 0 if
        that came first.
        """
        connection, device = next(self.turns)
        provider.push(0, f"/3/device/{device}", token, PAYLOAD)
        provider.flush()
        poll, seen = select.poll(), {}
        for one in (provider.socket, connection):
            poll.register(one, select.POLLIN)
        while len(seen) < 2:
            ready = poll.poll(20_000)
            now = time.perf_counter()
            if not ready:
                raise BadRun("a wait or its push got no response within 20 s")
            for descriptor, _ in ready:
                seen[descriptor] = now
                poll.unregister(descriptor)
        provider.finish()
        result = read_response(connection)
        if provider.ends.pop(0) != "accepted" or result["matched"] != 1:
            raise BadRun(f"a push was not accepted, or its wait not satisfied: {result}")
        ask(connection, device, result["seq"])
        return max(0, seen[connection.fileno()] - seen[provider.socket.fileno()])


def ask(connection, device, after):
    connection.sendall(f"GET /api/v1/pushes/wait?device_token={device}&timeout=5m&after={after} HTTP/1.1\r\n"
                       "host: localhost\r\n\r\n".encode())


def read_response(connection):
    with connection.makefile("rb") as file:
        if b" 200 " not in file.readline():
            raise BadRun("a wait was not answered 200")
        size = 0
        while (line := file.readline().lower()) not in (b"\r\n", b""):
            if line.startswith(b"content-length:"):
                size = int(line.partition(b":")[2])
        return json.loads(file.read(size))
