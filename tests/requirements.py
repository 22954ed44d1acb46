"""What tests of code for devices need: without it they are skipped, but where CEP_REQUIRE_DEVICE_CODE=1, as in CI, they fail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec

import pytest


def require(missing: Sequence[str]) -> None:
    """End the test for want of the packages that are `missing`, if any are."""
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        if os.environ.get("CEP_REQUIRE_DEVICE_CODE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def require_modules(*names: str) -> None:
    """End the test if one of the modules is not installed."""
    require([name for name in names if find_spec(name) is None])
