"""Sandbox and production side by side in one server, and listeners for channel management."""

import secrets

import pytest
from hyperframe.frame import GoAwayFrame

from support.certificates import DEVELOPMENT, PRODUCTION, provider_certificate
from support.server import Server, run, stop_cleanly
from support.tokens import foreign_key, public_half
from support.wire import Closed, connect, push_headers

SANDBOX, OTHER = "sandbox", "production"


@pytest.fixture(scope="module")
def both(binary, certs):
    """A server with listeners of both environments. The first APNs listener has the default of `--environment`."""
    running = Server(
        binary, certs, "--environment", OTHER, "--apns-plain", "127.0.0.1:0=sandbox", "--proxy", "127.0.0.1:0=sandbox",
        "--manage", "127.0.0.1:0=sandbox", "--manage", "127.0.0.1:0",
        apns=("127.0.0.1:0", "127.0.0.1:0=sandbox", "127.0.0.1:0=production"))
    running.ports = {OTHER: running.listeners[0][1], SANDBOX: running.listeners[1][1]}
    yield running
    stop_cleanly(running)


def push(server, environment, device, **changes):
    with connect(server, port=server.ports[environment]) as wire:
        response = wire.push(push_headers(server, device, **changes))
    return response.status, response.body.decode().removeprefix('{"reason":"').removesuffix('"}'), response


def test_only_the_sandbox_has_unique_ids(both, device):
    for environment in (SANDBOX, OTHER):
        status, _, response = push(both, environment, device)
        assert status == 200
        assert (response.header("apns-unique-id") is not None) == (environment == SANDBOX)


def test_port_file_and_status_name_the_environments(both):
    facts, status = both.facts, both.api("GET", "/status")
    assert (facts["environment"], status["environment"]) == (OTHER, OTHER)
    for known in (facts, status["addresses"]):
        assert [one["environment"] for one in known["apns"]] == [OTHER, SANDBOX, OTHER]
        assert [one["environment"] for one in known["apns_plain"]] == [SANDBOX]
        assert known["proxy"]["environment"] == SANDBOX
        assert [one["environment"] for one in known["manage"]] == [SANDBOX, OTHER]
    assert facts["apns"] == status["addresses"]["apns"] and facts["manage"] == status["addresses"]["manage"]


def test_the_start_message_names_them(both):
    text = "\n".join(both.logged("APNs", "https://"))
    first, second, third = (port for _, port in both.listeners)
    assert f"https://127.0.0.1:{first}  https://127.0.0.1:{second} (sandbox)  https://127.0.0.1:{third}" in text
    assert both.logged("channels", f"https://127.0.0.1:{both.facts['manage'][0]['port']} (sandbox)")


def test_a_key_is_judged_by_the_listeners_environment(both, device):
    key = foreign_key()
    both.api("PUT", "/keys/SIDEKEY001", {
        "team_id": both.team_id, "environment": SANDBOX, "public_key": public_half(key)})
    bearer = "bearer " + both.token(key=key, key_id="SIDEKEY001")
    assert push(both, SANDBOX, device, authorization=bearer)[0] == 200
    for token in (device, "0" * 64, "zz"):
        refused = push(both, OTHER, token, authorization=bearer)
        assert refused[:2] == (403, "BadEnvironmentKeyInToken"), "before the device token is looked at"
    # Again: the verification that the connections share does not depend on the environment.
    assert push(both, SANDBOX, device, authorization=bearer)[0] == 200
    both.api("DELETE", "/keys/SIDEKEY001")


@pytest.mark.parametrize(("mark", "own"), [(DEVELOPMENT, SANDBOX), (PRODUCTION, OTHER)])
def test_a_certificate_is_judged_by_the_listeners_environment(both, tmp_path, device, mark, own):
    pair = provider_certificate(both.certs, tmp_path, marks=(mark,))
    for environment, port in both.ports.items():
        with connect(both, certificate=pair, port=port) as wire:
            if environment == own:
                assert wire.push(push_headers(both, device, authorization=None)).status == 200
                continue
            try:
                wire.open(push_headers(both, device, authorization=None), b"{}")
            except Closed:
                pass  # the connection may already be closed
            goaways = [frame for frame in wire.read_to_end() if isinstance(frame, GoAwayFrame)]
            assert [frame.additional_data for frame in goaways] == [b'{"reason":"BadCertificateEnvironment"}']


def test_a_registered_device_belongs_to_one_environment(both, device):
    both.api("PUT", f"/devices/{device}", {"environment": SANDBOX})
    assert push(both, SANDBOX, device)[0] == 200
    assert push(both, OTHER, device)[:2] == (400, "BadDeviceToken")


def test_commands_use_the_environment_of_the_first_listener(both):
    done = both.command("doctor")
    assert done.returncode == 0, done.stdout
    values = both.command("env", "--shell", "dotenv").stdout
    first, _, third = (f"127.0.0.1:{port}" for _, port in both.listeners)
    assert f'APNS_MOCK_APNS="{first},{third}"' in values
    assert f'APNS_MOCK_MANAGE="127.0.0.1:{both.facts["manage"][0]["port"]}"' in values
    address = f"127.0.0.1:{both.ports[SANDBOX]}"
    sent = run(both.binary, "send", secrets.token_hex(32), "--topic", "com.example.app",
               environment={"APNS_MOCK_APNS": f"{address}=sandbox", "APNS_MOCK_PORT_FILE": str(both.port_file)})
    assert sent.returncode == 0, sent.stderr
    assert both.pushes()[-1]["listener"] == 1


def test_management_listeners_accept_no_pushes(both, device):
    for listener in both.facts["manage"]:
        with connect(both, port=listener["port"]) as wire:
            response = wire.push(push_headers(both, device))
            assert (response.status, response.body) == (404, b'{"reason":"BadPath"}')
            assert wire.push(push_headers(both, device, method_="GET")).status == 405
    record = both.pushes(device_token=device)[0]
    # The APNs listeners, the cleartext listener and the proxy are the first five.
    assert record["listener"] == 5
    assert "to a listener of --apns" in record["verdict"]["checks"][-1]["detail"]


@pytest.mark.parametrize(("flags", "words"), [
    (("--apns", "127.0.0.1:0=prod"), ("--apns", '"127.0.0.1:0=prod"', "HOST:PORT=sandbox or HOST:PORT=production")),
    (("--apns", "127.0.0.1:0+proxy-protocol=sandbox"), ("then +proxy-protocol",)),
    (("--manage", "2195"), ("--manage", '"2195"', "HOST:PORT")),
    (("--manage", "127.0.0.1:0+proxy-protocol"), ("--manage", "HOST:PORT")),
    (("--proxy", "127.0.0.1:0=development"), ("--proxy", "HOST:PORT=production")),
    (("--apns-plain", "127.0.0.1:0="), ("--apns-plain", "HOST:PORT=sandbox")),
])
def test_wrong_values_name_the_flag_and_the_form(binary, certs, flags, words):
    done = run(binary, "serve", "--certs", certs, *flags)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr


def test_wrong_values_in_variable_and_file(binary, certs, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("apns: {listen: ['127.0.0.1:0=sandbox', '127.0.0.1:0=moon']}\nmanage: 127.0.0.1:0=moon\n")
    done = run(binary, "serve", "--certs", certs, "--config", config, environment={"APNS_MOCK_APNS_PLAIN": "1:2=moon"})
    assert done.returncode == 2
    for word in (f"{config}:1:", f"{config}:2:", "APNS_MOCK_APNS_PLAIN"):
        assert word in done.stderr
