"""Fixtures: an empty inbox for each test, and a page for all tests of a file."""

import pytest

from support.browser import View


@pytest.fixture(autouse=True)
def empty_inbox(request):
    """Empties the inbox of the shared server, so that its page draws only the pushes of the test."""
    if "server" in request.fixturenames:
        request.getfixturevalue("server").api("POST", "/reset", {"inbox": True})


@pytest.fixture(scope="module")
def kept_view(browser, server):
    """The page of the shared server, loaded once for all tests of a file."""
    view = View(browser, server).live()
    yield view
    complaints, foreign = list(view.complaints), list(view.foreign)
    view.close()
    assert not complaints, complaints
    assert not foreign, foreign
