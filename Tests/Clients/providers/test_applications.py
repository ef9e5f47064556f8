"""Applications of the Python package index, unmodified: django-push-notifications and django-walletpass deliver, lose a
device, and meet a slow response and a reset connection. Each test asserts what the application does with the
response, and what its database contains afterwards.
"""

import json
import secrets

import pytest

from support.applications import Shop
from support.faults import faults, mock  # noqa: F401

TEXT = "Your order has shipped"
PASS = "pass.com.example.coupon"
ATTEMPTS = 5  # how often aioapns sends a push whose connection is lost

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def empty_shop(mock, tmp_path_factory):  # noqa: F811
    """A shop whose database has its tables and no rows."""
    shop = Shop(mock, tmp_path_factory.mktemp("shop") / "database")
    shop.succeed("migrate", "--verbosity", "0")
    return shop


@pytest.fixture
def shop(mock, faults, empty_shop, tmp_path):  # noqa: F811
    """A shop with an empty database, and a server without records, faults and findings."""
    mock.api("POST", "/reset", {"inbox": True, "devices": True})
    return empty_shop.copy(mock, tmp_path / "database")


@pytest.fixture
def devices():
    """Three new device tokens."""
    return [secrets.token_hex(32) for _ in range(3)]


def unregister(server, device):
    server.api("PUT", f"/devices/{device}", {"state": "unregistered"})


def sent(server, device=None):
    """Returns (status, accepted) of each push to a device, or of all pushes, in the order of their arrival."""
    query = {"device_token": device} if device else {}
    return [(record["served"]["status"], record["accepted"]) for record in server.pushes(**query)]


def findings(server):
    return {item["finding"] for item in server.api("GET", "/findings")["items"]}


# django-push-notifications

# It gives up after a second, including the time to connect, so these tests cannot share the machine with others.
hurried = pytest.mark.serial


def notify(shop, *options):
    """Notifies the customers of the shop; returns the result of each call."""
    return json.loads(shop.succeed("notify_customers", TEXT, *options))


def active(shop):
    """Returns which devices are active according to the database."""
    return dict(shop.rows("SELECT registration_id, active FROM push_notifications_apnsdevice"))


@hurried
def test_django_push_notifications_delivers_to_all_devices(mock, shop, devices):  # noqa: F811
    assert notify(shop, "--register", *devices) == [{device: "Success" for device in devices}]
    records = mock.pushes()
    assert sorted(record["request"]["device_token"] for record in records) == sorted(devices)
    assert {record["outcome"] for record in records} == {"accepted"}
    assert records[0]["request"]["payload"] == {
        "aps": {"alert": TEXT, "badge": None, "sound": None, "thread-id": None}}
    assert active(shop) == {device: True for device in devices}


@hurried
def test_django_push_notifications_deactivates_an_unregistered_device(mock, shop, devices):  # noqa: F811
    """It reports the other pushes as failed too: the exception does not say which device it is about."""
    lost = devices[1]
    unregister(mock, lost)
    assert notify(shop, "--register", *devices) == [
        {"error": "One or more errors failed with errors: Unregistered"}]
    assert active(shop) == {device: device != lost for device in devices}
    assert sent(mock, lost) == [(410, False)]
    assert notify(shop) == [{device: "Success" for device in devices if device != lost}]
    assert len(sent(mock, lost)) == 1
    assert "retried-410" not in findings(mock)


@hurried
def test_django_push_notifications_keeps_a_device_with_an_expired_token(mock, shop, device):  # noqa: F811
    """It deactivates a device on three reasons, and `ExpiredToken` is not one of them, so it pushes again."""
    mock.api("PUT", f"/devices/{device}", {"state": "expired"})
    expected = [{"error": "One or more errors failed with errors: ExpiredToken"}]
    assert notify(shop, "--register", device) == expected
    assert notify(shop) == expected
    assert active(shop) == {device: True}
    assert sent(mock, device) == [(410, False)] * 2
    assert "retried-410" in findings(mock)


@hurried
def test_django_push_notifications_reports_a_slow_response_as_failed(mock, shop, faults, devices):  # noqa: F811
    """APNs has accepted the push. It is not sent again, and the device stays active."""
    slow = devices[1]
    faults.add({"delay": {"fixed": "3s"}}, at="response", when={"device_token": slow})
    assert notify(shop, "--register", *devices) == [
        {"error": "One or more errors failed with errors: TimeoutError"}]
    assert active(shop) == {device: True for device in devices}
    assert [[accepted for _, accepted in sent(mock, device)] for device in devices] == [[True]] * 3


@pytest.mark.long
@hurried
def test_django_push_notifications_sends_again_after_a_reset(mock, shop, faults, device):  # noqa: F811
    """aioapns connects again at once and sends the push with the same id; the application does not notice."""
    rule = faults.add({"reset_connection": {}}, trigger={"times": 1})
    assert notify(shop, "--register", device) == [{device: "Success"}]
    assert faults.fired(rule) == 1
    assert sent(mock, device) == [(None, False), (200, True)]
    first, second = mock.pushes(device_token=device)
    assert first["apns"]["id"] == second["apns"]["id"]
    assert first["connection"]["id"] != second["connection"]["id"]
    assert active(shop) == {device: True}


@pytest.mark.long
@hurried
def test_django_push_notifications_gives_up_if_every_connection_is_reset(mock, shop, faults, device):  # noqa: F811
    faults.add({"reset_connection": {}})
    (result,) = notify(shop, "--register", device)
    assert result["error"].startswith("One or more errors failed with errors: CommunicationError")
    assert sent(mock, device) == [(None, False)] * ATTEMPTS
    assert active(shop) == {device: True}


@hurried
def test_django_push_notifications_connects_and_signs_for_every_call(mock, shop, devices):  # noqa: F811
    devices += [secrets.token_hex(32) for _ in range(3)]
    results = notify(shop, "--one-by-one", "--register", *devices)
    assert results == [{device: "Success"} for device in devices]
    assert len({record["connection"]["id"] for record in mock.pushes()}) == 6
    assert findings(mock) >= {"connection-churn", "jwt-churn"}


# django-walletpass

def registered(shop):
    """Returns the push tokens that are registered for a pass according to the database."""
    return {token for token, in shop.rows("SELECT push_token FROM django_walletpass_registration")}


def test_django_walletpass_delivers_to_all_registrations(mock, shop, devices):  # noqa: F811
    shop.succeed("update_passes", "--register", *devices)
    records = mock.pushes()
    assert [record["request"]["device_token"] for record in records] == devices
    assert {record["outcome"] for record in records} == {"accepted"}
    assert {record["apns"]["topic"] for record in records} == {PASS}
    assert {record["apns"]["push_type"] for record in records} == {None}
    assert not {"missing-push-type", "would-not-show"} & findings(mock), "Apple requires the type for apps only"
    assert records[0]["request"]["payload"] == {"aps": {}}
    assert len({record["connection"]["id"] for record in records}) == 3
    assert registered(shop) == set(devices)


def test_django_walletpass_deletes_the_registration_of_an_unregistered_device(mock, shop, devices):  # noqa: F811
    lost = devices[1]
    unregister(mock, lost)
    shop.succeed("update_passes", "--register", *devices)
    assert [sent(mock, device) for device in devices] == [[(200, True)], [(410, False)], [(200, True)]]
    assert registered(shop) == set(devices) - {lost}
    shop.succeed("update_passes")
    assert len(sent(mock, lost)) == 1
    assert "retried-410" not in findings(mock)


def test_django_walletpass_keeps_the_registration_of_a_bad_device_token(mock, shop, faults, devices):  # noqa: F811
    bad = devices[1]
    faults.add({"respond": {"status": 400, "reason": "BadDeviceToken"}}, when={"device_token": bad})
    shop.succeed("update_passes", "--register", *devices)
    assert [sent(mock, device) for device in devices] == [[(200, True)], [(400, False)], [(200, True)]]
    assert registered(shop) == set(devices)


def test_django_walletpass_waits_for_a_slow_response(mock, shop, faults, devices):  # noqa: F811
    """The pushes of a pass follow one another, so all further ones wait too."""
    rule = faults.add({"delay": {"fixed": "2s"}}, when={"device_token": devices[0]})
    shop.succeed("update_passes", "--register", *devices)
    assert faults.fired(rule) == 1
    records = mock.pushes()
    assert [record["request"]["device_token"] for record in records] == devices
    assert {record["outcome"] for record in records} == {"accepted"}


def test_django_walletpass_sends_again_after_a_reset(mock, shop, faults, devices):  # noqa: F811
    faults.add({"reset_connection": {}}, when={"device_token": devices[0]}, trigger={"times": 1})
    shop.succeed("update_passes", "--register", *devices)
    assert [sent(mock, device) for device in devices] == [[(None, False), (200, True)], [(200, True)], [(200, True)]]
    assert registered(shop) == set(devices)


def test_django_walletpass_skips_the_other_registrations_after_a_lost_connection(
        mock, shop, faults, devices):  # noqa: F811
    """Without a response it raises an error of its own, so the devices after the lost connection get no push."""
    faults.add({"reset_connection": {}}, when={"device_token": devices[1]})
    done = shop.run("update_passes", "--register", *devices)
    assert done.returncode == 1
    assert "AttributeError: 'NoneType' object has no attribute 'status'" in done.stderr
    assert [sent(mock, device) for device in devices] == [[(200, True)], [(None, False)] * ATTEMPTS, []]
    assert registered(shop) == set(devices)
