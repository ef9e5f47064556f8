"""Errors of the client."""

from __future__ import annotations


class APNsMockError(Exception):
    """The server could not be started, reached or used. The message is a sentence that says what to do."""


class ProgramError(APNsMockError):
    """The program apns-mock was not found, cannot be executed, or has another version than this package."""


class StartError(APNsMockError):
    """The server exited before it was ready, or was not ready in time."""


class ServerExitedError(APNsMockError):
    """The server that the client started is no longer running."""


class BlockingError(APNsMockError):
    """A method that waits was called in the thread of an event loop, which a provider in that loop needs to send."""

    def __init__(self, method: str, loop: str) -> None:
        super().__init__(
            f"{method}() would block the event loop of {loop}, so that nothing in it can send a push: use the fixture "
            f"`apns_async`, or a client of `apns_mock.aio`, and `await apns.{method}(…)`.")


class RequestError(APNsMockError):
    """The server rejected a request of the client, for example a filter with an unknown name."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        #: The HTTP status of the response.
        self.status = status


class WaitError(AssertionError):
    """The expected pushes did not arrive in time. The message names the nearest pushes."""


class VerificationError(AssertionError):
    """The pushes are not as expected. The message is the report of the server."""
