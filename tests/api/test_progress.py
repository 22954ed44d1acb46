"""How far starts come, against the oracle's matches and timeouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given

import gpu_cep as cep
from gpu_cep.errors import UnsupportedError
from gpu_cep.lang.format import format_query
from gpu_cep.oracle.events import matches
from gpu_cep.oracle.options import EventOptions
from gpu_cep.oracle.timeouts import timeouts
from tests.api.streams.test_timeouts import STRATEGIES, in_time
from tests.conformance.expectation import LIMIT
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.effort import examples

CLICKS = pa.table({
    "ts": [1, 2, 3, 4, 5, 9], "user": [7, 8, 7, 9, 7, 8], "type": ["View", "View", "Cart", "View", "Pay", "Pay"],
})  # fmt: skip
FUNNEL = "PATTERN SEQ(View v, Cart c, Pay p) WITHIN 60"


def by_definition(case: Case) -> list[list[Any]]:
    """The time of the first event of each variable, for the first match of each start, then for each timeout."""
    query, options = cep.parse(case.text), dict(case.options)
    options.pop("after_match", None)
    try:
        found = matches(query, case.events, EventOptions(after_match="skip_to_next", **options), limit=LIMIT)
        over = timeouts(query, case.events, EventOptions(**options), limit=LIMIT)
    except UnsupportedError:
        assume(False)
        raise
    times = case.events["ts"].to_pylist()
    rows = [(match, True) for match in found] + [(each.prefix, False) for each in over]
    return [[*(times[bound[0]] if bound else None for bound in row.values()), sum(map(bool, row.values())), done] for row, done in rows]


def same(case: Case) -> None:
    case = in_time(case)
    case = Case(format_query(replace(cep.parse(case.text), returns=())), case.events, case.options)
    options = {name: value for name, value in case.options.items() if name != "after_match"}
    found = cep.progress(case.events, case.text, **options)
    keys = len(options["partition_by"])
    assert [list(row.values())[keys:] for row in found.to_pylist()] == by_definition(case)


@examples(60, 300)
@given(whole_language(max_size=10, strategies=STRATEGIES))
def test_each_start_came_as_far_as_the_definition_says(case):
    same(case)


@examples(40, 200)
@given(trend_cases(strategies=STRATEGIES))
def test_strategies_are_told_apart(case):
    same(case)


def test_a_funnel_is_counted_in_bulk():
    found = cep.progress(CLICKS, FUNNEL, partition_by="user")
    counts = found.group_by("reached").aggregate([([], "count_all")]).sort_by("reached")
    assert counts.to_pylist() == [{"reached": 1, "count_all": 2}, {"reached": 3, "count_all": 1}]
    assert [name for name in found.column_names if name not in "vcp"] == ["user", "reached", "completed"]


def test_what_a_negation_rules_out_is_not_completed():
    found = cep.progress(CLICKS, "PATTERN SEQ(View v, NOT(Cart n), Pay p) WITHIN 60", partition_by="user").to_pylist()
    assert [(row["user"], row["reached"], row["completed"]) for row in found] == [(8, 2, True), (7, 2, False), (9, 1, False)]


def test_timestamps_may_have_another_name():
    clicks = CLICKS.rename_columns(["at", "user", "type"])
    assert cep.progress(clicks, FUNNEL, partition_by="user", timestamp="at")["p"].to_pylist() == [5, None, None]


@pytest.mark.parametrize(
    ("pattern", "options", "error", "message"),
    [
        (f"{FUNNEL} RETURN v.ts AS at", {}, cep.PatternError, "progress.. has columns of its own"),
        ("PATTERN SEQ(View reached, Pay p) WITHIN 9", {}, cep.PatternError, "two columns 'reached'\n.*hint: rename the variable"),
        *(
            (f"{keys} PATTERN SEQ(View user, Pay p) WITHIN 9", options, cep.PatternError, "two columns 'user'\n.*hint: rename the variable")
            for keys, options in (("PARTITION BY user", {}), ("", {"partition_by": "user"}), ("", {"partition_by": ["user"]}))
        ),
        *(
            (FUNNEL, {"partition_by": keys}, cep.PatternError, "partition_by must be the name of a column")
            for keys in (5, True, [["user"]])
        ),
        ("PATTERN SEQ(View v, Pay p)", {}, cep.UnsupportedError, "needs a window of time"),
        (FUNNEL, {"strategy": "skip_till_any_match"}, cep.UnsupportedError, "is not supported under skip_till_any_match"),
        ("DEFINE A AS user > 7, B AS user < 9 PATTERN A before B WITHIN 9", {}, cep.UnsupportedError, "not supported for situations"),
        ("MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS user > 7)", {}, cep.UnsupportedError, "MATCH_RECOGNIZE is not supported here"),
    ],
)
def test_what_has_no_progress_is_refused(pattern, options, error, message):
    with pytest.raises(error, match=message):
        cep.progress(CLICKS, pattern, **options)


@pytest.mark.parametrize("names", [iter, np.array, pd.Index, pd.Series, dict.fromkeys])
def test_keys_come_in_whatever_holds_names(names: Callable[[list[str]], Any]) -> None:
    clicks = CLICKS.append_column("shop", CLICKS["user"])
    assert cep.progress(clicks, FUNNEL, partition_by=names(["user", "shop"])) == cep.progress(clicks, FUNNEL, partition_by=["user", "shop"])
    with pytest.raises(cep.PatternError, match="two columns 'user'"):
        cep.progress(clicks, "PATTERN SEQ(View user, Pay p) WITHIN 9", partition_by=names(["user"]))


def test_a_key_with_the_name_of_another_column_is_refused():
    with pytest.raises(cep.PatternError, match=r"two columns 'completed'\n.*hint: rename the input column"):
        cep.progress(CLICKS.rename_columns(["ts", "completed", "type"]), FUNNEL, partition_by="completed")
