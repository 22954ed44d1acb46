"""Proofs of code for devices do not vanish unseen: what they need is there, or the test fails where that is asked for."""

from __future__ import annotations

import pytest

from tests.requirements import require, require_modules


@pytest.mark.parametrize(("value", "outcome"), [("1", pytest.fail.Exception), ("0", pytest.skip.Exception)])
def test_what_is_missing_skips_a_test_or_fails_it(monkeypatch, value, outcome):
    monkeypatch.setenv("CEP_REQUIRE_DEVICE_CODE", value)
    with pytest.raises(outcome, match="not installed: nvidia-nvvm, cupy"):
        require(["nvidia-nvvm", "cupy"])
    with pytest.raises(outcome, match="not installed: no_such_module"):
        require_modules("numpy", "no_such_module")


def test_what_is_there_ends_nothing(monkeypatch):
    monkeypatch.setenv("CEP_REQUIRE_DEVICE_CODE", "1")
    require([])
    require_modules("numpy", "pytest")
