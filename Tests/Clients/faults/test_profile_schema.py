"""The JSON Schema of the profile file, checked with an independent validator, as an editor uses it."""

import json
import subprocess

import jsonschema
import pytest
import yaml

from support import ROOT

PROFILES = sorted((ROOT / "FaultProfiles").glob("*.yaml"))


@pytest.fixture(scope="module")
def schema(binary):
    return json.loads(subprocess.run([binary, "profile", "schema"], check=True, capture_output=True).stdout)


@pytest.fixture(scope="module")
def validator(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def lints(binary, path):
    return subprocess.run([binary, "profile", "lint", path], capture_output=True).returncode == 0


def test_there_are_twenty_three_profiles():
    assert len(PROFILES) == 23


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_profile_is_valid(validator, binary, path):
    assert list(validator.iter_errors(yaml.safe_load(path.read_text()))) == []
    assert lints(binary, path)


@pytest.mark.parametrize("text", [
    "rules: [{trigger: {probabilty: 0.5}, do: {close: {}}}]",
    "rules: [{do: {respnd: {status: 503}}}]",
    "rules: [{at: later, do: {close: {}}}]",
    "rules: [{do: {close: {}, delay: {fixed: 1s}}}]",
    "rules: [{trigger: {probability: 20}, do: {close: {}}}]",
    "rules: [{do: {delay: {fixed: 5}}}]",
    "rules: [{name: no-action}]",
    "rulez: []",
    "rules: [{when: {device_token: 1234}, do: {close: {}}}]",
    "params: {rate: {type: number, default: 1}}",
    "apns: {max_strems: 5}",
])
def test_the_linter_rejects_what_the_schema_rejects(validator, binary, tmp_path, text):
    path = tmp_path / "profile.yaml"
    path.write_text("name: profile\n" + text + "\n")
    assert list(validator.iter_errors(yaml.safe_load(path.read_text()))) != []
    assert not lints(binary, path)


def test_the_server_has_the_same_schema(server, schema):
    response = server.request("GET", "/schema/fault-profile.json")
    assert json.loads(response.body) == schema
