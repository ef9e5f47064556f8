"""How a client reaches a server."""

import dataclasses

APPLE = "api.sandbox.push.apple.com"


@dataclasses.dataclass(frozen=True)
class Way:
    """Connection settings as a user would give them. Drivers ignore those for which their client has no setting."""

    host: str = "localhost"
    port: int | None = None  # default: the server's port
    address: str | None = None  # the address of `host`, configured in the client itself
    hosts_file: tuple = ()  # command prefix that replaces the machine's hosts file
    tls: str | None = None  # "1.2" or "1.3": only that version
    alpn: bool = True
    connections: int = 1  # one after the other, with a push on each
    streams: int = 1  # concurrent streams per connection

    def authority(self, server):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port or server.port}"
