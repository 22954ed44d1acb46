"""A schema with every type, and queries bound to it."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_cep.analysis.bind import bind
from gpu_cep.analysis.bound import BoundPattern
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    STRING,
    Attribute,
    DataType,
    Kind,
    Schema,
    decimal,
    duration,
    timestamp,
)
from gpu_cep.errors import PatternError, UnsupportedError
from tests.event_queries import event_query

SCHEMA = Schema(
    (
        Attribute("ts", timestamp("us")),
        Attribute("type", STRING),
        Attribute("id", INTEGER),
        Attribute("n", INTEGER),
        Attribute("x", FLOAT),
        Attribute("d2", decimal(10, 2)),
        Attribute("d4", decimal(8, 4)),
        Attribute("s", STRING),
        Attribute("flag", BOOLEAN),
        Attribute("day", DATE),
        Attribute("at", timestamp("ms")),
        Attribute("zoned", timestamp("us", "UTC")),
        Attribute("took", duration("ms")),
        Attribute("wide", decimal(38, 2)),
        Attribute("blob", DataType(Kind.OTHER, name="binary")),
    )
)


def bound(text: str, **options: Any) -> BoundPattern:
    return bind(event_query(text), SCHEMA, Options(**options), text)


def faults(error: type[PatternError] | type[UnsupportedError], text: str, **options: Any) -> list[str]:
    """The faults that `text` is refused with, each as message and hint."""
    with pytest.raises(error) as caught:
        bound(text, **options)
    assert type(caught.value) is error
    return [each.message if each.hint is None else f"{each.message}; {each.hint}" for each in caught.value.diagnostics]


def errors(text: str, **options: Any) -> list[str]:
    return faults(PatternError, text, **options)


def refusals(text: str, **options: Any) -> list[str]:
    return faults(UnsupportedError, text, **options)
