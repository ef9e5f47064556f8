"""Real HTTP/2 clients behind one signature. Nothing but host, port, CA and credential is set on any of them."""

import asyncio
import dataclasses
import json
import pathlib
import re
import shutil
import ssl
import subprocess

import aioapns
import aioapns.connection
import httpx
import pytest

from support.server import clean_environment

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"


@dataclasses.dataclass
class Push:
    """What to send. Token mode unless `certificate` is a (chain, key) pair of paths."""

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


@dataclasses.dataclass
class Reply:
    """What the client reports."""

    status: int
    apns_id: str | None
    reason: str | None = None
    timestamp: int | None = None

    @staticmethod
    def of(status, apns_id, body):
        error = json.loads(body) if body else {}
        return Reply(int(status), apns_id, error.get("reason"), error.get("timestamp"))


def tool(name):
    """The path of a client program; the test is skipped, with the reason, where the machine cannot have it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not on this machine and `.ci/packages test` could not install it")
    return path


def finished(arguments, **options):
    """Runs a client to its end; its standard output. A client that fails fails the test with its own words."""
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, **options)
    assert done.returncode == 0, f"{arguments[0]} ended with {done.returncode}: {done.stderr}{done.stdout}"
    return done.stdout


def curl(server, push, *flags):
    arguments = [tool("curl"), "--silent", "--show-error", "--include", "--http2", "--cacert", server.ca]
    for name, value in push.headers(server).items():
        arguments += ["--header", f"{name}: {value}"]
    if push.certificate:
        arguments += ["--cert", str(push.certificate[0]), "--key", str(push.certificate[1])]
    arguments += ["--data", push.body, *flags, f"{server.url}/3/device/{push.device}"]
    head, _, body = finished(arguments, env=clean_environment()).replace("\r\n", "\n").partition("\n\n")
    lines = head.split("\n")
    protocol, status = lines[0].split()[:2]
    assert protocol == "HTTP/2", lines[0]
    named = dict(line.split(": ", 1) for line in lines[1:])
    return Reply.of(status, named.get("apns-id"), body)


def nghttp(server, push):
    arguments = [tool("nghttp"), "--verbose", "--data", "-"]
    for name, value in push.headers(server).items():
        arguments += ["--header", f"{name}: {value}"]
    if push.certificate:
        arguments += ["--cert", str(push.certificate[0]), "--key", str(push.certificate[1])]
    payload = server.directory / f"{push.device[:16]}.json"
    payload.write_text(push.body)
    arguments[arguments.index("-")] = str(payload)
    arguments.append(f"{server.url}/3/device/{push.device}")
    text = finished(arguments, env=clean_environment(SSL_CERT_FILE=server.ca))
    received = dict(re.findall(r"recv \(stream_id=\d+[^)]*\) (:?[a-z-]+): (.*)", text))
    assert received, text
    bodies = re.findall(r'^\{"reason".*?\}', text, re.MULTILINE)
    return Reply.of(received[":status"], received.get("apns-id"), bodies[0] if bodies else "")


def python_httpx(server, push):
    context = ssl.create_default_context(cafile=server.ca)
    if push.certificate:
        context.load_cert_chain(*map(str, push.certificate))
    with httpx.Client(http2=True, verify=context, trust_env=False) as client:
        response = client.post(
            f"{server.url}/3/device/{push.device}", headers=push.headers(server), content=push.body)
    assert response.http_version == "HTTP/2"
    return Reply.of(response.status_code, response.headers.get("apns-id"), response.text)


def python_aioapns(server, push):
    protocol = aioapns.connection.APNsDevelopmentClientProtocol
    protocol.APNS_SERVER, protocol.APNS_PORT = "localhost", server.port
    if push.certificate:
        both = server.directory / "client-both.pem"
        both.write_text("".join(pathlib.Path(path).read_text() for path in push.certificate))
        credential = {"client_cert": str(both)}
    else:
        credential = {"key": server.key, "key_id": server.key_id, "team_id": server.team_id}

    async def deliver():
        client = aioapns.APNs(
            **credential, topic=push.topic, use_sandbox=True,
            ssl_context=ssl.create_default_context(cafile=server.ca))
        try:
            request = aioapns.NotificationRequest(
                device_token=push.device, message=push.payload, notification_id=push.apns_id,
                priority=push.priority, collapse_key=push.collapse_id, push_type=aioapns.PushType(push.push_type))
            return await asyncio.wait_for(client.send_notification(request), 20)
        finally:
            client.pool.close()

    result = asyncio.run(deliver())
    return Reply(int(result.status), result.notification_id, result.description, result.timestamp)


def described(server, push):
    """The description the programs in `programs/` read from standard input."""
    words = {
        "url": server.url, "ca": server.ca, "device": push.device, "headers": push.headers(server),
        "payload": push.body,
    }
    if push.certificate:
        words |= {"certificate": str(push.certificate[0]), "certificateKey": str(push.certificate[1])}
    return json.dumps(words)


def node(server, push):
    text = finished([tool("node"), str(PROGRAMS / "push.mjs")], input=described(server, push), env=clean_environment())
    reply = json.loads(text)
    return Reply.of(reply["status"], reply["apnsId"], reply["body"])


def php(server, push):
    program = tool("php")
    if subprocess.run([program, "-r", 'exit(extension_loaded("curl") ? 0 : 1);']).returncode != 0:
        pytest.skip("PHP has no curl extension here and `.ci/packages test` could not install it")
    text = finished([program, str(PROGRAMS / "push.php")], input=described(server, push), env=clean_environment())
    reply = json.loads(text)
    return Reply.of(reply["status"], reply["apnsId"], reply["body"])


ALL = {
    "curl": curl, "nghttp": nghttp, "httpx": python_httpx, "aioapns": python_aioapns, "node": node, "php": php,
}
