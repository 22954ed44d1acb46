"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# Every run tries the same 50 examples of a property, so that its verdict is the code's; CEP_EXAMPLES asks for so many others each time.
examples = os.environ.get("CEP_EXAMPLES")
settings.register_profile("cep", max_examples=int(examples or 50), derandomize=examples is None, deadline=None)
settings.load_profile("cep")
