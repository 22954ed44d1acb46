"""Tell what failed on a worker as the error that was raised there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from gpu_cep import errors

# What a traceback says last. A message may have several lines before the pattern, which a worker adds to it.
_LAST = re.compile(r"^gpu_cep\.errors\.(\w+): ((?:.*?; the pattern is )?[^\n]*)", re.MULTILINE | re.DOTALL)


@contextmanager
def workers_errors() -> Iterator[None]:
    """Raise a CepError that a worker raised as itself, without the worker's traceback; other errors stay Spark's."""
    try:
        yield
    except PySparkException as fault:
        known = _error_in(str(fault))
        if known is None:
            raise
        raise known from None


def _error_in(text: str) -> errors.CepError | None:
    """Return the CepError that a traceback ends in; None if it ends in another."""
    found = _LAST.search(text)
    kind = None if found is None else getattr(errors, found[1], None)
    if found is None or not isinstance(kind, type) or not issubclass(kind, errors.CepError):
        return None
    return kind(found[2])
