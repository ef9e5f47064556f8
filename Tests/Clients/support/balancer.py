"""A TCP load balancer in front of several servers."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

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


@contextlib.contextmanager
def balancer(*servers):
    """Distributes connections over the APNs ports of the servers in turn; yields its port on 127.0.0.1."""
    with tempfile.TemporaryDirectory(prefix="apns-mock-test-") as folder, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        configuration = pathlib.Path(folder) / "haproxy.cfg"
        configuration.write_text(CONFIGURATION.format(listener=listener.fileno()) + "".join(
            f"  server mock{number} 127.0.0.1:{server.port}\n" for number, server in enumerate(servers)))
        setpriv = shutil.which("setpriv")
        # On Linux it ends with this process.
        prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        process = subprocess.Popen(
            [*prefix, program(), "-db", "-f", str(configuration)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, pass_fds=[listener.fileno()])
        try:
            yield listener.getsockname()[1]
            assert process.poll() is None, f"haproxy has ended: {process.stderr.read().decode()}"
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
