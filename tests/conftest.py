"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# CEP_EXAMPLES is how many examples each property test tries; `make fuzz` raises it.
settings.register_profile("cep", max_examples=int(os.environ.get("CEP_EXAMPLES", "50")), deadline=None)
settings.load_profile("cep")
