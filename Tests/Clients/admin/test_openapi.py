"""The OpenAPI description of the admin API: valid, complete and correct. A generator sends valid and invalid
requests to every operation and compares the responses with the description.
"""

import contextlib
import json
import subprocess
import sys

import jsonschema
import openapi_spec_validator
import pytest

from support import ROOT
from support.selection import ALL
from support.server import clean_environment, run
from support.wire import Closed, connect, push_headers

# Their responses are endless, or as long as the inbox.
STREAMS = ["/api/v1/events", "/api/v1/devices/{id}/notifications/stream", "/api/v1/devices/notifications/stream"]

# They empty the inbox, which the other operations read.
EMPTYING = ["deletePushes", "reset"]

# Nobody has to ask for verifications in every form in `make test`: their description is made from what parses them.
LONG = [] if ALL else ["/api/v1/verify"]

# Not checked: that every request allowed by the schemas is accepted. The schemas do not describe the semantics of
# queries and rules.
CHECKS = ",".join([
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "unsupported_method", "allow_header_conformance",
    "missing_required_header", "ignored_auth"])


@pytest.fixture(scope="module")
def description(server):
    return server.request("GET", "/openapi.json").json


def test_the_description_is_valid(description):
    openapi_spec_validator.validate(description)
    assert description["openapi"].startswith("3.1")


def test_the_command_prints_the_same_without_a_server(binary, description, tmp_path):
    done = run(binary, "openapi", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout) == description
    assert len(done.stdout.splitlines()) > 100
    assert json.loads(run(binary, "openapi", "--json", cwd=tmp_path).stdout) == description
    assert list(tmp_path.iterdir()) == []


def test_every_operation_documents_its_responses(description):
    for path, item in description["paths"].items():
        assert path.startswith("/")
        for method, operation in item.items():
            if method == "parameters":
                continue
            where = f"{method} {path}"
            assert operation["summary"].endswith("."), where
            assert {"200", "201", "204"} & operation["responses"].keys(), where
            if "requestBody" in operation:
                assert {"400", "413", "415"} <= operation["responses"].keys() | {"400"}, where
            if path.startswith("/api/"):
                assert {"401", "403"} <= operation["responses"].keys(), where


def test_operation_ids_are_unique(description):
    ids = [operation["operationId"] for item in description["paths"].values()
           for method, operation in item.items() if method != "parameters"]
    assert len(ids) == len(set(ids))


def hooks():
    """Returns environment variables with which schemathesis sends fewer pushes, unless all tests run."""
    return {} if ALL else {"SCHEMATHESIS_HOOKS": str(ROOT / "Tests/Clients/programs/schemathesis_hooks.py")}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("flag", ["--exclude-operation-id", "--include-operation-id"])
def test_the_api_conforms_to_its_description(start, device, flag):
    server = start("--seed", "7")
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        assert wire.push(push_headers(server, "ab12", apns_push_type="nonsense")).status == 400
        flags = [word for path in STREAMS + LONG for word in ("--exclude-path", path)]
        flags += [word for operation in EMPTYING for word in (flag, operation)]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--config-file",
             ROOT / "Tests/Clients/programs/schemathesis.toml", "run",
             f"http://{server.admin_host}:{server.admin_port}/openapi.json", "--seed", "1", "--max-examples", "20" if ALL else "1",
             "--phases", "examples,coverage,fuzzing", "--checks", CHECKS, "--request-timeout", "300",
             "--continue-on-failure", "--no-color", *flags],
            capture_output=True, text=True, cwd=server.directory, timeout=1100, env=clean_environment(**hooks()))
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4000:]
    assert "Tested:" in done.stdout, done.stdout
    assert "something went wrong" not in server.log()


def validator(description, name):
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": description["components"]},
        format_checker=jsonschema.FormatChecker())


ACTIONS = [
    ("request", {"respond": {"status": 503, "reason": "Made.Up", "unreal": True}}),
    ("request", {"delay": {"fixed": "10ms"}}), ("request", {"reset_stream": {}}), ("request", {"reset_connection": {}}),
    ("request", {"goaway": {"code": "ENHANCE_YOUR_CALM", "debug": "calm down"}}), ("request", {"close": {}}),
    ("response", {"lose_answer": {"end_with": "reset_stream"}}), ("response", {"truncate_body": {}}),
]


def test_every_kind_of_record_is_as_described(start, description, device):
    """Records of all kinds of faults and of disconnected clients, more kinds than the generator would produce."""
    server = start()
    check = validator(description, "Record")
    for number, (point, action) in enumerate(ACTIONS):
        server.api("POST", "/rules", {"name": f"action-{number}", "at": point, "do": action})
        with contextlib.suppress(Closed, OSError), connect(server) as wire:
            wire.push(push_headers(server, device))
        server.api("DELETE", f"/rules/action-{number}")
    with connect(server) as wire:
        wire.push(push_headers(server, device), b"no JSON")
        wire.push(push_headers(server, device, apns_expiration="1"))
    records = server.pushes()
    assert {record["fault"]["rule"] for record in records if record["fault"]} == {
        f"action-{number}" for number in range(len(ACTIONS))}
    assert {record["fault"] is None for record in records} == {True, False}
    for record in records:
        check.validate(record)
    validator(description, "Statistics").validate(server.api("GET", "/stats"))
    for connection in server.api("GET", "/connections")["items"]:
        validator(description, "Connection").validate(connection)
    for profile in server.api("GET", "/profiles")["items"]:
        validator(description, "Profile").validate(server.api("GET", f"/profiles/{profile['name']}"))
