"""The types of the client libraries have every member of a record that the OpenAPI description has."""

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = yaml.safe_load((ROOT / "Sources/AdminAPI/OpenAPI/record.yaml").read_text())["components"]["schemas"]
#: Objects that Java and Swift flatten, and what a Swift server in process does not have or has elsewhere.
FLAT = {"connection", "request", "apns", "auth", "verdict", "fault", "served"}
NOT_IN_SWIFT = {"run", "test", "violation", "listener", "finished_at", "push_key", "findings"}


def paths(schema: dict, prefix: str = "") -> set[str]:
    """Returns the members of a schema and of those in it, such as `served.goaway.code`."""
    if reference := schema.get("$ref"):
        name = reference.split("/")[-1]
        return paths(SCHEMAS[name], prefix) if name in SCHEMAS else set()
    found = set()
    for name, member in schema.get("properties", {}).items():
        member = member.get("items", member) if member.get("type") == "array" else member
        found |= {prefix + name} | paths(member, f"{prefix}{name}.")
    return found


def python_paths() -> set[str]:
    module = ast.parse((ROOT / "Clients/Python/apns_mock/records.py").read_text())
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}

    def members(name: str, prefix: str) -> set[str]:
        found = set().union(*(members(base.id, prefix) for base in classes[name].bases if base.id in classes))
        for member in classes[name].body:
            if isinstance(member, ast.AnnAssign):
                path = prefix + member.target.id
                found.add(path)
                for word in re.findall(r"\w+", ast.unparse(member.annotation)):
                    found |= members(word, f"{path}.") if word in classes else set()
        return found

    return members("Push", "")


def typescript_paths() -> set[str]:
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "Clients/Node/lib/index.d.ts").read_text(), flags=re.DOTALL)
    interfaces = dict(re.findall(r"export interface (\w+) \{\n(.*?)\n\}", text, re.DOTALL))

    def members(body: str, prefix: str) -> set[str]:
        found, path, depth = set(), [], 0
        for name, opening, closing, type_name in re.findall(r"(\w+)\??:\s|(\{)|(\})|(\w+);", body):
            if name:
                found.add(prefix + ".".join([*path[:depth], name]))
                path[depth:] = [name]
            depth += bool(opening) - bool(closing)
            if type_name in interfaces:
                found |= members(interfaces[type_name], prefix + ".".join(path[:depth + 1]) + ".")
        return found

    return members(interfaces["Push"], "")


def go_paths() -> set[str]:
    text = (ROOT / "Clients/Go/push.go").read_text()
    body = re.search(r"type Push struct \{\n(.*?)\n\}\n", text, re.DOTALL)[1]
    lines = [line for line in body.splitlines() if not line.strip().startswith("//")]
    found, path = set(), []
    # From the end, because the name of a nested struct follows its members.
    for line in reversed(lines):
        tag = re.search(r'`json:"(\w+)"`', line)
        if tag:
            found.add(".".join([*path, tag[1]]))
        if line.strip().startswith("}"):
            path.append(tag[1])
        if line.endswith("struct {"):
            path.pop()
    return found


@pytest.mark.parametrize("of_library", [python_paths, typescript_paths, go_paths])
def test_types_have_every_member(of_library):
    members = paths(SCHEMAS["Record"])
    assert {"environment", "connection.http", "served.goaway.code", "fault.by", "verdict.checks.detail", "request.complete"} <= members
    # Only exports have the format, and only views of several servers the server.
    assert members - of_library() == {"format", "server", "server_seq"}


@pytest.mark.parametrize("file, pattern, missing", [
    ("Clients/Java/src/main/java/io/github/apnsmock/Push.java", r"(?:String|long|int|boolean|Instant|List<String>) {}[,)]", set()),
    ("Sources/MockAPNS/API/ReceivedPush.swift", r"public var (?:is)?{}: ", NOT_IN_SWIFT)])
def test_flat_types_have_every_required_member(file, pattern, missing):
    text = (ROOT / file).read_text()
    members = set(SCHEMAS["Record"]["required"]) - FLAT - missing | {"topic", "push_type", "priority", "collapse_id"}

    def camel_case(name: str) -> str:
        return re.sub(r"_(\w)", lambda match: match[1].upper(), name)

    absent = {name for name in members if not re.search(pattern.format(camel_case(name)), text, re.IGNORECASE)}
    assert absent == set()


def test_the_type_has_the_same_name_everywhere():
    assert "export interface Push {" in (ROOT / "Clients/Node/lib/index.d.ts").read_text()
    assert "class Push(WithUpstream)" in (ROOT / "Clients/Python/apns_mock/records.py").read_text()
    assert "type Push struct" in (ROOT / "Clients/Go/push.go").read_text()
    assert "public record Push(" in (ROOT / "Clients/Java/src/main/java/io/github/apnsmock/Push.java").read_text()
