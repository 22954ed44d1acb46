"""Events whose columns' roles are said once are asked as the functions ask that take the roles."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_cep as cep
from gpu_cep.errors import PatternError

TABLE = pa.table(
    {
        "at": [1, 2, 3, 4, 5, 6],
        "user": ["ann", "bob", "ann", "bob", "ann", "bob"],
        "step": ["View", "View", "Buy", "View", "Buy", "Buy"],
    }
)
ROLES = {"timestamp": "at", "partition_by": "user", "type_column": "step"}
QUERY = "PATTERN SEQ(View v, Buy b)"
BOUND = cep.events(TABLE, timestamp="at", partition_by="user", type_column="step")


def test_methods_ask_as_the_functions_do() -> None:
    assert BOUND.match(QUERY) == cep.match(TABLE, QUERY, **ROLES)
    assert BOUND.match(QUERY, output="indices", strategy="skip_till_any_match").num_rows == 4
    assert BOUND.match(QUERY, result="pandas")["user"].tolist() == ["ann", "bob", "bob"]
    assert str(BOUND.explain(QUERY, run=True, threads=1)).startswith(str(cep.explain(TABLE, QUERY, **ROLES)).split("\n\n")[0])
    assert BOUND.plot(QUERY, match=1).figure is not None
    assert "3 matches" in BOUND.report(QUERY, timelines=0).html


def test_a_path_is_read_by_each_query(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "steps.parquet")
    assert cep.events(str(tmp_path / "steps.parquet"), **ROLES).match(QUERY) == BOUND.match(QUERY)


def test_count_is_the_number_of_matches() -> None:
    assert BOUND.count(QUERY) == 3
    assert BOUND.count(QUERY, strategy="skip_till_any_match") == 4
    with pytest.warns(cep.AbsentValueWarning, match="no event has step 'Sell'") as caught:
        assert BOUND.count("PATTERN SEQ(Sell s, Buy b)") == 0
    assert caught[0].filename == __file__


def test_roles_are_said_once() -> None:
    assert repr(BOUND) == "Events(Table, timestamp='at', partition_by='user', type_column='step', nulls='error')"
    assert repr(cep.events("a/b.parquet")) == "Events(a/b.parquet, timestamp='ts', type_column='type', nulls='error')"
    with pytest.raises(TypeError, match=r"match\(\) got an unexpected keyword argument 'timestamp'"):
        BOUND.match(QUERY, timestamp="at")
    with pytest.raises(TypeError, match=r"the columns are named once, in events\(data, partition_by=…\)"):
        BOUND.count(QUERY, partition_by="user")
    with pytest.raises(TypeError, match=r"in events\(data, timestamp=…\)"):
        BOUND.report(QUERY, time_column="at")
    with pytest.raises(TypeError, match="the window stands in the pattern"):
        BOUND.match(QUERY, within="5 minutes")
    with pytest.raises(PatternError, match="timestamp must be text, not 7"):
        cep.events(TABLE, timestamp=7)
    with pytest.raises(PatternError, match=r"(?s)attt.*did you mean 'at'"):
        cep.events(TABLE, timestamp="attt").count(QUERY)


def test_tuning_stands_for_its_keywords() -> None:
    profile = cep.Profile()
    tuning = cep.Tuning(algorithm="backtracking", threads=1, profile=profile)
    assert BOUND.match(QUERY, tuning=tuning) == BOUND.match(QUERY)
    assert profile.counts["matches"] == 3
    explained = cep.explain(TABLE, QUERY, tuning=tuning, **ROLES)
    assert "algorithm  backtracking" in str(explained)
    with pytest.raises(cep.MatchLimitExceeded):
        BOUND.match(f"{QUERY} WHERE v.at < b.at", tuning=cep.Tuning(max_steps=1))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"tuning": cep.Tuning(threads=2), "threads": 1}, "threads is given twice, by itself and in tuning"),
        ({"tuning": cep.Tuning(algorithm="nfa")}, "(?s)algorithm='nfa' is unknown.*did you mean 'nfab'"),
        ({"tuning": {"threads": 1}}, r"tuning must be a gpu_cep.Tuning, such as Tuning\(threads=1\), not {'threads': 1}"),
    ],
)
def test_unsound_tuning_is_refused(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(PatternError, match=message):
        cep.match(TABLE, QUERY, **ROLES, **keywords)


@pytest.mark.parametrize("ask", [cep.match, cep.plot, cep.report], ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("query", [QUERY, "  pattern seq(a, b)", cep.parse(QUERY), cep.seq(cep.var("a"), cep.var("b"))], ids=type)
@pytest.mark.parametrize("events", [TABLE, "steps.parquet", None], ids=type)
def test_events_and_pattern_that_changed_places_are_told(ask, query, events) -> None:
    with pytest.raises(PatternError, match=f"{ask.__name__}\\(\\) takes the events first, then the pattern"):
        ask(query, events)


def test_explain_takes_the_events_first_and_the_order_of_before_with_a_warning() -> None:
    expected = str(BOUND.explain(QUERY))
    assert str(cep.explain(TABLE, QUERY, **ROLES)) == str(cep.explain(pattern=QUERY, events=TABLE, **ROLES)) == expected
    with pytest.warns(DeprecationWarning, match=r"explain\(events, pattern\)") as caught:
        assert str(cep.explain(QUERY, TABLE, **ROLES)) == expected
    assert caught[0].filename == __file__


def test_a_path_that_begins_as_a_query_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "pattern of steps.parquet")
    assert cep.match("pattern of steps.parquet", QUERY, **ROLES) == BOUND.match(QUERY)
