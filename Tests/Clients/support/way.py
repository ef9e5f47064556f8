"""Where a server is for a client."""

import dataclasses

APPLE = "api.sandbox.push.apple.com"


@dataclasses.dataclass(frozen=True)
class Way:
    """How to get to a server, as a user would say it. What a client has no setting for, its driver does not read."""

    host: str = "localhost"
    port: int | None = None  # the server's
    address: str | None = None  # where `host` is, said to the client itself
    hosts_file: tuple = ()  # words before the command, after which the machine's hosts file is another
    tls: str | None = None  # "1.2" or "1.3": that version only
    alpn: bool = True
    connections: int = 1  # one after the other, a push on each
    streams: int = 1  # at once, on each connection

    def authority(self, server):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port or server.port}"
