"""The test of `make soak`, for a few seconds."""

import pytest

from support.soak import Soak

SECONDS = 20


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_short_soak(binary, certs):
    soak = Soak(binary, certs, seconds=SECONDS)
    failures = soak.run()
    assert not failures, (soak.seed, failures, list(soak.report()))
    assert soak.checked > 100, "hardly anything was acknowledged"
