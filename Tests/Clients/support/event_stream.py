"""An event stream of the admin API, read in a thread."""

import contextlib
import http.client
import json
import threading

SECONDS = 90  # until the stream must contain an event


class Events(threading.Thread):
    """Reads an event stream. `events`: the names and the data."""

    def __init__(self, server, query=""):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection(server.admin_host, server.admin_port, timeout=SECONDS)
        self.connection.request("GET", "/api/v1/events" + query)
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        self.events = []
        self.changed = threading.Condition()
        self.start()

    def run(self):
        name = None
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for line in self.response:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    with self.changed:
                        self.events.append((name, json.loads(value)))
                        self.changed.notify_all()

    def until(self, condition, message):
        with self.changed:
            assert self.changed.wait_for(condition, SECONDS), message()

    def of(self, name):
        return [data for event, data in self.events if event == name]

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.sock.shutdown(2)
        self.connection.close()


@contextlib.contextmanager
def events(server, query=""):
    reader = Events(server, query)
    try:
        yield reader
    finally:
        reader.close()
