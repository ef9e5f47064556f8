"""Test code that sends Apple push notifications: starts and controls an apns-mock server.

    import apns_mock

    with apns_mock.start() as apns:
        send_welcome(apns.settings)  # your code
        apns.wait(count=1, accepted=True)

The pytest plugin of this package has the fixture `apns`, which does this for each test. `apns_mock.aio` has the same
for asynchronous code.
"""

from ._version import VERSION as __version__
from .client import Client, Clock, Device, Duration, FilterValue, Settings, connect, device_token, start
from .errors import (
    APNsMockError, BlockingError, ProgramError, RequestError, ServerExitedError, StartError, VerificationError,
    WaitError)
from .records import Finding, Push
from .runs import Run, write_report

__all__ = [
    "APNsMockError", "BlockingError", "Client", "Clock", "Device", "Duration", "FilterValue", "Finding",
    "ProgramError", "Push", "RequestError", "Run", "ServerExitedError", "Settings", "StartError", "VerificationError",
    "WaitError", "__version__", "connect", "device_token", "start", "write_report",
]
