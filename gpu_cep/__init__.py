"""Event pattern matching over columns: the public names, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_cep.api import Profile, explain, match, parse
from gpu_cep.errors import (
    CepError,
    EngineUnavailable,
    EventError,
    MatchLimitExceeded,
    PatternError,
    PatternSyntaxError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from gpu_cep_spark import gpu_match

__all__ = [
    "CepError",
    "EngineUnavailable",
    "EventError",
    "MatchLimitExceeded",
    "PatternError",
    "PatternSyntaxError",
    "Profile",
    "UnsupportedError",
    "explain",
    "gpu_match",
    "match",
    "parse",
]


def __getattr__(name: str) -> Any:
    # pyspark is imported by those who ask for it
    if name == "gpu_match":
        from gpu_cep_spark import gpu_match

        return gpu_match
    raise AttributeError(f"module 'gpu_cep' has no attribute {name!r}")
