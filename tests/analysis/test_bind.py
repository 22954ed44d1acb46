"""What text and keywords say together, and that all faults are found at once."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from gpu_cep.analysis.bind import bind
from gpu_cep.analysis.coercion import exact_decimals
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.types import FLOAT, Attribute, Schema, decimal
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.lang.parser import parse
from tests.analysis.queries import SCHEMA, bound, errors, refusals


def columns(*names: str) -> tuple[int, ...]:
    return tuple(SCHEMA.index(name) for name in names)


def test_defaults() -> None:
    query = bound("PATTERN SEQ(a, b)")
    assert (query.strategy, query.ties, query.timestamp) == ("skip_till_next_match", "strict", SCHEMA.index("ts"))
    assert (query.partition_by, query.order_by, query.returns, query.conditions) == ((), (), (), ())
    assert pickle.loads(pickle.dumps(query)) == query


@pytest.mark.parametrize(
    ("text", "keyword", "expected"),
    [
        ("", None, ()),
        ("PARTITION BY id, s", None, ("id", "s")),
        ("", ("id",), ("id",)),
        ("PARTITION BY id", ("id",), ("id",)),
        ("PARTITION BY id, s", ("s", "id"), ("id", "s")),
    ],
)
def test_partition_by_from_text_and_keyword(text: str, keyword: tuple[str, ...] | None, expected: tuple[str, ...]) -> None:
    assert bound(f"{text} PATTERN SEQ(a, b)", partition_by=keyword).partition_by == columns(*expected)


@pytest.mark.parametrize(
    ("where", "keyword", "expected"),
    [
        ("", "skip_till_any_match", "skip_till_any_match"),
        ("WHERE skip_till_any_match { TRUE }", None, "skip_till_any_match"),
        ("WHERE skip_till_any_match(a, b[]) { TRUE }", "skip_till_any_match", "skip_till_any_match"),
    ],
)
def test_strategy_from_text_and_keyword(where: str, keyword: str | None, expected: str) -> None:
    assert bound(f"PATTERN SEQ(a, b+) {where}", strategy=keyword).strategy == expected


def test_order_by_ties_and_timestamp() -> None:
    query = bound("PATTERN SEQ(a, b)", order_by=("s", "id"), ties="position", timestamp="x")
    assert (query.order_by, query.ties, query.timestamp) == (columns("s", "id"), "position", SCHEMA.index("x"))


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (
            "PARTITION BY id PATTERN SEQ(a, b)",
            {"partition_by": ("s",)},
            "partition_by=['s'] contradicts PARTITION BY id; leave one of them out",
        ),
        ("PARTITION BY id PATTERN SEQ(a, b)", {"partition_by": ()}, "partition_by=[] contradicts PARTITION BY id; leave one of them out"),
        ("PATTERN SEQ(a, b)", {"partition_by": ("idd",)}, "unknown attribute in partition_by 'idd'; did you mean 'id'?"),
        ("PATTERN SEQ(a, b)", {"partition_by": ("id", "id")}, "partition_by names 'id' twice"),
        ("PATTERN SEQ(a, b)", {"order_by": ("idd",)}, "unknown attribute in order_by 'idd'; did you mean 'id'?"),
        ("PATTERN SEQ(a, b)", {"timestamp": "tss"}, "unknown timestamp column 'tss'; did you mean 'ts'?"),
        (
            "PATTERN SEQ(a, b)",
            {"timestamp": "s"},
            "the timestamp 's' is of type string; it must be an integer, a float, a date or a timestamp; "
            f"cast it: table.set_column({SCHEMA.index('s')}, 's', table['s'].cast('timestamp[us]')), "
            "df['s'] = pandas.to_datetime(df['s'], format='ISO8601') "
            "or df.withColumn('s', to_timestamp('s')); for text with a zone write pyarrow.timestamp('us', 'UTC') in place of "
            "'timestamp[us]', and format='ISO8601', utc=True; gpu-cep reads ISO 8601, and other forms by --timestamp-format",
        ),
        ("PATTERN SEQ(a, b)", {"strategy": "skip_till_any"}, "unknown strategy 'skip_till_any'; did you mean 'skip_till_any_match'?"),
        (
            "PATTERN SEQ(a, b) WHERE skip_till_any_match { TRUE }",
            {"strategy": "skip_till_next_match"},
            "strategy='skip_till_next_match' contradicts skip_till_any_match in the text; leave one of them out",
        ),
        (
            "PATTERN SEQ(a, b) WHERE skip_till_any_match(a, c) { TRUE }",
            {},
            "unknown variable 'c'; there are a, b",
        ),
        (
            "PATTERN SEQ(a, b) WHERE skip_till_any_match(a, b, b) { TRUE }",
            {},
            "skip_till_any_match(a, b, b) names 'b' twice",
        ),
        ("PATTERN SEQ(a, b)", {"ties": "positon"}, "unknown value of ties 'positon'; did you mean 'position'?"),
    ],
)
def test_errors(text: str, options: dict[str, Any], expected: str) -> None:
    assert errors(text, **options) == [expected]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy(strategy: str) -> None:
    assert bound("PATTERN SEQ(a, b)", strategy=strategy).strategy == strategy
    assert bound(f"PATTERN SEQ(a, b) WHERE {strategy} {{ TRUE }}").strategy == strategy


def test_a_strategy_need_not_list_negated_variables() -> None:
    assert bound("PATTERN SEQ(a, NOT(b), c) WHERE strict_contiguity(a, c) { TRUE }").strategy == "strict_contiguity"


EXACT = "decimals up to 18 digits are exact: cast it to "


@pytest.mark.parametrize(
    ("text", "options", "construct", "hint"),
    [
        ("PATTERN SEQ(a, b) WHERE skip_till_any_match(a) { TRUE }", {}, "skip_till_any_match(a) without b", "a strategy holds for all"),
        ("PATTERN SEQ(a, b)", {"timestamp": "d2"}, "the timestamp 'd2' of type decimal(10, 2)", "a timestamp is"),
        ("PATTERN SEQ(a, b)", {"partition_by": ("blob",)}, "partition_by 'blob' of type binary", "keys are numbers"),
        ("PATTERN SEQ(a, b)", {"order_by": ("wide",)}, "order_by 'wide' of type decimal(38, 2)", f"{EXACT}a DECIMAL of 18 digits"),
    ],
)
def test_refusals(text: str, options: dict[str, Any], construct: str, hint: str) -> None:
    (refusal,) = refusals(text, **options)
    assert refusal.startswith(f"{construct} is not supported; {hint}")


def test_a_wide_decimal_without_a_fraction_is_cast_to_an_integer() -> None:
    assert exact_decimals(decimal(38, 0)) == f"{EXACT}BIGINT, to text if it is a key, or to DOUBLE"


ALL_WRONG = """PARTITION BY idd
PATTERN SEQ(a, b{3000000000}, a)
WHERE a.nn = 1 AND avg(b.x) > 2 AND a.s < 3
WITHIN 0 EVENTS
RETURN c.id"""


def test_all_faults_at_once_and_errors_before_refusals() -> None:
    with pytest.raises(PatternError) as caught:
        bind(parse(ALL_WRONG), SCHEMA, Options(), ALL_WRONG)
    assert [each.message for each in caught.value.diagnostics] == [
        "variable 'a' stands in the pattern twice",
        "unknown attribute in partition_by 'idd'",
        "unknown attribute 'nn'",
        "cannot compare string with integer",
        "unknown variable 'c'",
        "a window of 0 events is not a whole number of events from 1 up",
    ]
    assert "line 3, column 7: unknown attribute 'nn'\n  WHERE a.nn = 1 AND avg(b.x) > 2 AND a.s < 3\n        ^^^^\n" in str(caught.value)


def test_all_refusals_at_once() -> None:
    text = "PATTERN SEQ(a{3000000000}, b+) WHERE skip_till_any_match(a) { avg(b.took) > 2 days AND b[3].n = 1 }"
    with pytest.raises(UnsupportedError) as caught:
        bind(parse(text), SCHEMA, Options(), text)
    assert [each.message.removesuffix(" is not supported") for each in caught.value.diagnostics] == [
        "the quantifier of a{3000000000}",
        "skip_till_any_match(a) without b",
        "avg(b.took)",
        "b[3].n in WHERE",
    ]


def test_types_that_nothing_reads_do_not_matter() -> None:
    schema = Schema((Attribute("ts", FLOAT), Attribute("wide", decimal(38, 2))))
    assert bind(parse("PATTERN SEQ(a, b)"), schema, Options()).schema is schema
