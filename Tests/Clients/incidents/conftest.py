"""The fixture of all incidents."""

import shutil

import pytest

from support.incidents import Incident, sections, name_of_test


@pytest.fixture
def incident(request, server, certs, tmp_path, paste, start):
    """The section of the page Incidents.md about the thread that the test is named after. All its commands must be run,
    in a folder of its own with its own `Certs`, because some add keys.
    """
    (text,) = [text for thread, text in sections().items() if name_of_test(thread) == request.node.name]
    (tmp_path / "Certs").unlink()
    shutil.copytree(certs, tmp_path / "Certs")
    found = Incident(text, tmp_path, paste, start)
    yield found
    assert not found.left, f"the test runs only a part of the commands, not {found.left}"
