"""Real HTTP/2 clients behind one signature. Only host, port, CA and credential are configured on any of them."""

import dataclasses
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
from unittest.mock import ANY

import pytest

from support.server import clean_environment

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"


@dataclasses.dataclass
class Push:
    """The push to send. Uses a provider token unless `certificate` is a (chain, key) pair of paths."""

    device: str
    payload: dict
    topic: str = "com.example.app"
    push_type: str = "alert"
    priority: int = 10
    apns_id: str | None = None
    collapse_id: str | None = None
    certificate: tuple | None = None

    def headers(self, server):
        named = {
            "apns-topic": self.topic, "apns-push-type": self.push_type, "apns-priority": str(self.priority),
            "apns-id": self.apns_id, "apns-collapse-id": self.collapse_id,
            "authorization": None if self.certificate else server.bearer,
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def body(self):
        return json.dumps(self.payload)


def unreported():
    return dataclasses.field(default_factory=lambda: ANY)


@dataclasses.dataclass
class Reply:
    """What the client reports. A field that the client does not report equals every value."""

    status: int = unreported()
    apns_id: str | None = unreported()
    reason: str | None = unreported()
    timestamp: int | None = unreported()
    alpn: str | None = unreported()
    statuses: list = unreported()

    @staticmethod
    def of(status, apns_id, body, **more):
        error = json.loads(body) if body else {}
        return Reply(int(status), apns_id, error.get("reason"), error.get("timestamp"), **more)


def tool(name):
    """Returns a client program's path; skips the test if the machine does not have it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not on this machine and `.ci/packages test` could not install it")
    return path


def finished(arguments, **options):
    """Runs a client to its end and returns its standard output. If the client fails, the test fails with the
    client's output.
    """
    options.setdefault("env", clean_environment(NO_PROXY="*"))
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, **options)
    assert done.returncode == 0, f"{arguments[0]} ended with {done.returncode}: {done.stderr}{done.stdout}"
    return done.stdout


def curl(server, push, way=None, *flags):
    way = way or server.way
    authority = way.authority(server)
    arguments = [
        *way.hosts_file, tool("curl"), "--silent", "--show-error", "--include", "--cacert", server.ca,
        *(["--http2"] if way.alpn else ["--no-alpn", "--http2-prior-knowledge"]),
    ]
    for name, value in push.headers(server).items():
        arguments += ["--header", f"{name}: {value}"]
    if push.certificate:
        arguments += ["--cert", str(push.certificate[0]), "--key", str(push.certificate[1])]
    if way.tls:
        arguments += [f"--tlsv{way.tls}", "--tls-max", way.tls]
    if way.address:
        arguments += ["--connect-to", f"{authority}:{way.address}:{way.port or server.port}"]
    arguments += ["--data", push.body, *flags, f"https://{authority}/3/device/{push.device}"]
    head, _, body = finished(arguments).replace("\r\n", "\n").partition("\n\n")
    lines = head.split("\n")
    protocol, status = lines[0].split()[:2]
    assert protocol == "HTTP/2", lines[0]
    named = dict(line.split(": ", 1) for line in lines[1:])
    return Reply.of(status, named.get("apns-id"), body)


def nghttp(server, push, way=None):
    way = way or server.way
    payload = server.directory / f"{push.device[:16]}.json"
    payload.write_text(push.body)
    arguments = [*way.hosts_file, tool("nghttp"), "--verbose", "--data", str(payload)]
    for name, value in push.headers(server).items():
        arguments += ["--header", f"{name}: {value}"]
    if push.certificate:
        arguments += ["--cert", str(push.certificate[0]), "--key", str(push.certificate[1])]
    arguments.append(f"https://{way.authority(server)}/3/device/{push.device}")
    text = finished(arguments, env=clean_environment(SSL_CERT_FILE=server.ca))
    received = dict(re.findall(r"recv \(stream_id=\d+[^)]*\) (:?[a-z-]+): (.*)", text))
    assert received, text
    bodies = re.findall(r'^\{"reason".*?\}', text, re.MULTILINE)
    return Reply.of(received[":status"], received.get("apns-id"), bodies[0] if bodies else "")


def program(*command, **variables):
    """Returns a driver that runs one of `programs/` with a description of the push on its standard input."""

    def drive(server, push, way=None):
        way = way or server.way
        described = {
            **dataclasses.asdict(way), **dataclasses.asdict(push), "port": way.port or server.port, "ca": server.ca,
            "url": f"https://{way.authority(server)}", "headers": push.headers(server), "payload": push.body,
            "key": server.key_path, "key_id": server.key_id, "team_id": server.team_id,
        }
        if push.certificate:
            chain, key = map(str, push.certificate)
            both = server.directory / "certificate-and-key.pem"
            both.write_text(pathlib.Path(chain).read_text() + pathlib.Path(key).read_text())
            described |= {"certificate": chain, "certificate_key": key, "certificate_and_key": str(both)}
        environment = clean_environment(NO_PROXY="*", SSL_CERT_FILE=server.ca, **variables)
        text = finished([*way.hosts_file, *command], input=json.dumps(described), env=environment)
        report = json.loads(text)
        if "body" in report:
            return Reply.of(report.pop("status"), report.pop("apns_id"), report.pop("body"), **report)
        return Reply(**{**report, "status": int(report["status"])} if "status" in report else report)

    return drive


def python(name, **variables):
    return program(sys.executable, str(PROGRAMS / f"push_{name}.py"), **variables)


def node(server, push, way=None):
    return program(tool("node"), str(PROGRAMS / "push.mjs"))(server, push, way)


def php_with_curl():
    """Returns the command for PHP; skips the test if PHP has no curl extension."""
    path = tool("php")
    if subprocess.run([path, "-r", 'exit(extension_loaded("curl") ? 0 : 1);']).returncode != 0:
        pytest.skip("PHP has no curl extension here and `.ci/packages test` could not install it")
    return [path]


def php(server, push, way=None):
    return program(*php_with_curl(), str(PROGRAMS / "push.php"))(server, push, way)


def kalyke(server, push, way=None):
    if importlib.util.find_spec("kalyke") is None:
        pytest.skip("kalyke is not here: it needs Python 3.11 or newer")
    return python("kalyke")(server, push, way)


def apns2_folder():
    """Returns the folder of apns2, which is separate from the other libraries because it needs older versions of h2
    and PyJWT.
    """
    folder = pathlib.Path(sys.prefix) / "apns2"
    if sys.version_info >= (3, 12):
        pytest.skip("apns2 needs ssl.match_hostname, which Python 3.12 removed")
    if not folder.exists():
        pytest.skip(f"apns2 is not in {folder}; `make test-clients` puts it there")
    return folder


def apns2(server, push, way=None):
    return python("apns2", PYTHONPATH=str(apns2_folder()))(server, push, way)


ALL = {
    "curl": curl, "nghttp": nghttp, "httpx": python("httpx"), "curl_cffi": python("curl_cffi"),
    "aioapns": python("aioapns"), "apns2": apns2,
    "kalyke": kalyke, "node": node, "php": php,
}
# No setting for host and port: the machine has to resolve Apple's name to the server, on port 443.
FIXED = {"kalyke"}
# No setting for the apns-id.
NAMELESS = {"apns2"}
