"""Only the columns that a query reads are sent to Python."""

from __future__ import annotations

import pytest

from gpu_cep.analysis.bind import bind
from gpu_cep.analysis.bound import BoundPattern
from gpu_cep.analysis.options import Options
from gpu_cep.engine.input.read_tables import schema_of
from gpu_cep.lang.parser import parse
from gpu_cep.plan.columns_read import columns_read
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.narrowing.ties import tie_breakers
from tests.spark.samples import streams

pytestmark = pytest.mark.surface

EVENTS = streams(1, seed=0).schema


def bound(text: str, **options: object) -> BoundPattern:
    return bind(parse(text), schema_of(EVENTS), Options(**options), text)


def names(columns: tuple[int, ...]) -> list[str]:
    return [EVENTS.names[column] for column in columns]


@pytest.mark.parametrize(
    ("text", "settings", "read"),
    [
        ("PATTERN SEQ(A a, B b) RETURN a.n AS n", Settings(), ["ts", "type", "n"]),
        ("PATTERN SEQ(a, b) RETURN a.n AS n", Settings(), ["ts", "n"]),
        ("PATTERN SEQ(a, b) RETURN count(a) AS n", Settings(), ["ts"]),
        ("PATTERN SEQ(a, b) RETURN max(a.x) AS x", Settings(), ["ts", "x"]),
        ("PARTITION BY user PATTERN SEQ(a, b) WHERE [key]", Settings(output="count"), ["ts", "key", "user"]),
        ("PATTERN SEQ(a, b+) WHERE prev(b.x) < b.x AND abs(a.n) > 1", Settings(output="count"), ["ts", "x", "n"]),
        ("PATTERN SEQ(a, b) WHERE lower(a.key) = 'k'", Settings(output="count"), ["ts", "key"]),
        ("PATTERN SEQ(a, b)", Settings(), EVENTS.names),
        ("PATTERN SEQ(a, b)", Settings(columns=("x",)), ["ts", "x"]),
        ("PATTERN SEQ(a, b) RETURN a.n AS n", Settings(output="events", columns=("x",)), ["ts", "x", "n"]),
    ],
)
def test_columns_read(text: str, settings: Settings, read: list[str]) -> None:
    assert names(columns_read(bound(text), settings)) == read


def test_order_by_breaks_ties_first() -> None:
    query = bound("PARTITION BY key PATTERN SEQ(A a, B b) RETURN a.n AS n", order_by=("x",))
    assert names(tie_breakers(query, columns_read(query, Settings()))) == ["x", "type", "n"]
