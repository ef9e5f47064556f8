"""Fixtures: a server for the tests of the page, whose inbox is empty before each of them, and a page for all tests of a file."""

import contextlib

import pytest

from support.browser import View
from support.server import Server, stop_cleanly


@pytest.fixture(scope="session")
def server(binary, certs):
    """A server with default settings, apart from the one whose pushes other tests keep."""
    running = Server(binary, certs)
    yield running
    stop_cleanly(running)


@pytest.fixture(autouse=True)
def empty_inbox(request):
    """Empties the inbox of the server, so that its page draws only the pushes of the test."""
    if "server" in request.fixturenames:
        request.getfixturevalue("server").api("POST", "/reset", {"inbox": True})


@contextlib.contextmanager
def kept(browser, server, **settings):
    """A page that is loaded once for all tests of a file, which change its address by `visit`."""
    view = View(browser, server, **settings).live()
    yield view
    complaints, foreign = list(view.complaints), list(view.foreign)
    view.close()
    assert not complaints, complaints
    assert not foreign, foreign


@pytest.fixture(scope="module")
def kept_view(browser, server):
    """The page of the server, loaded once for all tests of a file."""
    with kept(browser, server) as view:
        yield view


@pytest.fixture(scope="module")
def furnished_view(browser, furnished):
    """The page of the file's server `furnished`, loaded once for all tests of the file."""
    with kept(browser, furnished, reduced_motion="reduce") as view:
        yield view
