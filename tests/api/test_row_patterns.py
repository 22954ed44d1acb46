"""MATCH_RECOGNIZE in calls: match() answers it, and every other call says so before it reads anything."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep import explanations
from gpu_cep.engine.input.sources import Source
from gpu_cep.errors import CepError, EventError, PatternError, UnsupportedError
from gpu_cep.plan.row_patterns import planner
from gpu_cep.plan.row_patterns.planner import plan_row_pattern

TICKS = pa.table(
    {
        "ts": pa.array([dt.datetime(2024, 5, 1, 9, minute) for minute in range(6)], pa.timestamp("ms", "UTC")),
        "Symbol": pa.array(["A", "A", "A", "B", "B", None]).dictionary_encode(),
        "price": pa.array([5, 3, 4, 9, 8, 7], pa.int32()),
        "paid": pa.array([Decimal("1.50"), None, Decimal("2.25"), Decimal("1.00"), Decimal("0.10"), None], pa.decimal128(9, 2)),
        "day": pa.array([dt.date(2024, 5, 1)] * 6, pa.date32()),
        "tags": pa.array([["x"], [], None, ["y"], [], []]),
    }
)
FALL = "PATTERN (S D+) DEFINE D AS price < PREV(price)"


def ask(clauses: str, events=TICKS, **keywords):
    """The result of the matcher, which is that of brute force, errors included."""
    text = f"MATCH_RECOGNIZE ({clauses})"
    try:
        expected = cep.match(events, text, algorithm="brute_force", **keywords)
    except CepError as fault:
        with pytest.raises(type(fault), match=re.escape(str(fault))):
            cep.match(events, text, **keywords)
        raise
    found = cep.match(events, text, **keywords)
    # as text, NaN equals itself
    assert (found.schema, str(found.to_pydict())) == (expected.schema, str(expected.to_pydict()))
    return found


def test_one_row_per_match_has_keys_and_measures():
    asked = "FIRST(ts) AS t, LAST(ts) - FIRST(ts) AS took, LAST(D.price) AS low, sum(paid) AS paid, avg(price) AS mean, LAST(day) AS day"
    found = ask(f"PARTITION BY symbol ORDER BY ts MEASURES {asked}, CLASSIFIER() AS v, price < 5 AS ok, NULL AS nothing {FALL}")
    assert found.schema.names == ["Symbol", "t", "took", "low", "paid", "mean", "day", "v", "ok", "nothing"]
    assert found.schema.types[1:] == [
        pa.timestamp("ms", "UTC"), pa.duration("ms"), pa.int32(), pa.decimal128(18, 2), pa.float64(), pa.date32(), pa.string(), pa.bool_(),
        found.schema.field("nothing").type,
    ]  # fmt: skip
    assert [list(row.values()) for row in found.to_pylist()] == [
        ["A", TICKS["ts"][0].as_py(), dt.timedelta(minutes=1), 3, Decimal("1.50"), 4.0, dt.date(2024, 5, 1), "D", True, None],
        ["B", TICKS["ts"][3].as_py(), dt.timedelta(minutes=1), 8, Decimal("1.10"), 8.5, dt.date(2024, 5, 1), "D", False, None],
    ]


def test_all_rows_have_keys_measures_and_the_other_columns():
    found = ask(f"PARTITION BY symbol ORDER BY ts MEASURES MATCH_NUMBER() AS m ALL ROWS PER MATCH WITH UNMATCHED ROWS {FALL}")
    assert found.schema.names == ["Symbol", "ts", "m", "price", "paid", "day", "tags"]
    assert found["m"].to_pylist() == [None, 1, 1, None, 1, 1]
    assert found.drop_columns("m").select(TICKS.schema.names).equals(TICKS.take([5, 0, 1, 2, 3, 4]))


def test_a_table_without_matches_has_the_same_columns():
    asked = f"PARTITION BY symbol ORDER BY ts MEASURES LAST(price) AS p, count(*) AS n {FALL}"
    assert ask(asked, TICKS.slice(0, 0)).schema == ask(asked).schema


def test_keywords_supply_clauses():
    asked = f"MEASURES LAST(price) AS p {FALL}"
    assert ask(asked, partition_by="Symbol", order_by="ts") == ask(f"PARTITION BY symbol ORDER BY ts {asked}")
    with pytest.raises(PatternError, match=r"order_by=\['price'\] contradicts ORDER BY"):
        ask(f"ORDER BY ts {asked}", order_by="price")


def test_bound_events():
    ticks = cep.events(TICKS, partition_by="Symbol")
    text = f"MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES LAST(price) AS p {FALL})"
    assert ticks.match(text, algorithm="brute_force") == cep.match(TICKS, text, algorithm="brute_force")


def test_a_window_and_time_unit():
    asked = "ORDER BY ts MEASURES count(*) AS n PATTERN (A+) WITHIN"
    assert ask(f"{asked} 2 MINUTES")["n"].to_pylist() == [3, 3]
    assert ask(f"{asked} 120", time_unit="s")["n"].to_pylist() == [3, 3]


def test_functions_of_the_caller():
    twice = ask(f"ORDER BY ts MEASURES twice(D.price) AS t {FALL}", functions={"twice": lambda x: x * 2})
    assert twice["t"].to_pylist() == [6, 14]
    for name in ("lag", "Next", "classifier", "match_sequence_number"):
        with pytest.raises(PatternError, match=f"functions: '{name.lower()}' is the name of a function of row patterns"):
            cep.match(TICKS, f"MATCH_RECOGNIZE (MEASURES 1 AS m {FALL})", functions={name: lambda x: x})


def test_trees_files_and_frames(tmp_path):
    text = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(price) AS p {FALL})"
    expected = cep.match(TICKS, text, algorithm="brute_force")
    assert cep.match(TICKS, cep.parse(text), algorithm="brute_force") == expected
    pq.write_table(TICKS.drop_columns("Symbol"), tmp_path / "ticks.parquet")
    assert cep.match(tmp_path / "ticks.parquet", text, algorithm="brute_force") == expected
    assert list(cep.match(TICKS, text, algorithm="brute_force", result="pandas")["p"]) == [3, 7]


def test_only_what_is_read_is_read_of_a_source():
    asked = []

    def read(columns):
        asked.append(columns)
        return TICKS.select(columns)

    source = Source(TICKS.schema, read, "ticks")
    falls = f"MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES LAST(price) AS p {FALL})"
    assert cep.match(source, falls).num_rows == 2
    assert cep.match(source, "MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A+))")["n"].to_pylist() == [6]
    assert asked == [["ts", "Symbol", "price"], ["ts"]]
    with pytest.raises(PatternError, match="unknown column 'prize'"):
        cep.match(source, "MATCH_RECOGNIZE (MEASURES LAST(prize) AS p PATTERN (A+))")
    assert len(asked) == 2


def test_an_error_of_the_match():
    with pytest.raises(EventError, match=r"AFTER MATCH SKIP TO LAST S: match 1 of its partition, from row 0 on, would be found again"):
        ask("ORDER BY ts MEASURES count(*) AS n AFTER MATCH SKIP TO S " + FALL)


UNREADABLE = "no/such/file.parquet"


@pytest.mark.parametrize("algorithm", ["ses_automaton", "backtracking"])
def test_other_algorithms_say_what_runs(algorithm):
    with pytest.raises(UnsupportedError, match=r"is not supported for MATCH_RECOGNIZE; supported: 'auto' and 'brute_force'"):
        cep.match(UNREADABLE, f"MATCH_RECOGNIZE (MEASURES price AS p {FALL})", algorithm=algorithm)


@pytest.mark.parametrize(
    "setting", [{"output": "count"}, {"output": "indices"}, {"after_match": "skip_to_next"}, {"max_matches": 3}, {"columns": "price"}]
)  # fmt: skip
def test_settings_of_event_patterns_are_refused(setting):
    ((name, value),) = setting.items()
    with pytest.raises(UnsupportedError, match=f"{name}=.* is not supported for MATCH_RECOGNIZE"):
        ask(f"MEASURES price AS p {FALL}", UNREADABLE, **{name: value})


def test_other_calls_say_what_runs():
    text = f"MATCH_RECOGNIZE (MEASURES price AS p {FALL})"
    for call in (cep.plot, cep.progress):
        with pytest.raises(UnsupportedError, match=r"MATCH_RECOGNIZE is not supported here; supported: gpu_cep.match"):
            call(TICKS, text)
    with pytest.raises(PatternError, match="takes the events first"):
        cep.match(text, TICKS)
    with pytest.raises(UnsupportedError, match=r"(?s)complete_until= is not supported for MATCH_RECOGNIZE.*gpu_cep.stream"):
        cep.match(TICKS, text, complete_until=3)


EXPLAINED = """MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES LAST(D.price) AS low
  ONE ROW PER MATCH
  PATTERN (S D+ U)
  DEFINE D AS price > 1 AND price < PREV(price) AND price BETWEEN 2 AND 9, U AS price > LAST(D.price) AND count(D.*) > \
1 AND paid = FIRST(paid)
)

partitions Symbol
order      ts
window     none
labels (in bulk, for all rows)
  D: price > 1
  D: price BETWEEN 2 AND 9
  D: price < PREV(price), by rows at -1, 0
  U: price > LAST(D.price), by rows at -1, 0
  S: any row
conditions that read the match (row by row)
  U: count(D.*) > 1
  U: paid = FIRST(paid)
pattern    3 states of 3 variables
algorithm  search in order of preference along the moves from which labels let a match end, with a memory of dead ends
engine     cpu
cost       steps may grow with the rows, times the rows of the longest match that is tried; PARTITION BY and WITHIN \
shorten it; max_steps= limits the steps
rows       one for each match"""


def test_explain_says_what_labels_decide_and_what_reads_the_match():
    text = EXPLAINED.partition("\n\n")[0]
    assert str(cep.explain(text)) == text
    assert str(cep.explain(TICKS, text)) == str(cep.explain(TICKS.slice(0, 0), text)) == EXPLAINED
    assert str(cep.events(TICKS).explain(text)) == EXPLAINED
    assert cep.explain(TICKS, text)._repr_html_().startswith("<pre>MATCH_RECOGNIZE (")


@pytest.mark.parametrize(
    ("clauses", "lines"),
    [
        (FALL, ["algorithm  ordered automaton over labels", "cost       grows with the rows, whatever the pattern"]),
        ("PATTERN (A+ B+) WITHIN 9 EVENTS DEFINE B AS price > LAST(A.price)", ["window     9 rows", "times the different rows"]),
        ("PATTERN (A) WITHIN 90 SECONDS", ["window     90 seconds", "1 state of 1 variable", "partitions one"]),
    ],
)
def test_explain_says_what_it_costs(clauses, lines):
    explained = str(cep.explain(TICKS, f"MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n {clauses})"))
    for line in lines:
        assert line in explained


def test_explain_runs_it():
    text = "MATCH_RECOGNIZE (PARTITION BY symbol MEASURES count(*) AS n PATTERN (A+) DEFINE A AS count(*) < 3)"
    profile = cep.Profile()
    explained = cep.explain(TICKS, text, run=True, profile=profile)
    found = cep.match(TICKS, text)
    rows, partitions = TICKS.num_rows, 3
    assert explained.counts == profile.counts
    assert explained.counts == {"rows": rows, "partitions": partitions, "matches": found.num_rows, "steps": profile.counts["steps"]}
    assert rows <= profile.counts["steps"] <= 4 * rows
    assert f"ran        rows {rows} → partitions {partitions} → matches {found.num_rows} → steps" in str(explained)
    with pytest.raises(PatternError, match="a query runs over events"):
        cep.explain(text, run=True)
    assert "matches" in cep.waterfall(explained).svg


def test_explain_reads_no_rows_of_files(tmp_path, monkeypatch):
    pq.write_table(TICKS, tmp_path / "ticks.parquet")
    text = EXPLAINED.partition("\n\n")[0]
    monkeypatch.setattr(explanations, "read_rows", None)
    assert str(cep.explain(tmp_path / "ticks.parquet", text)) == EXPLAINED


def test_explain_refuses_what_it_cannot():
    text = f"MATCH_RECOGNIZE (MEASURES price AS p {FALL})"
    with pytest.raises(UnsupportedError, match="MATCH_RECOGNIZE with algorithm='brute_force', which has no plan"):
        cep.explain(TICKS, text, algorithm="brute_force")
    with pytest.raises(PatternError, match="unknown column 'prize'"):
        cep.explain(TICKS, text.replace("price AS", "prize AS"))
    explained = cep.explain(TICKS, text)
    for call in (explained.mermaid, explained.svg, lambda: explained.save("x.svg"), lambda: explained.render(".svg")):
        with pytest.raises(UnsupportedError, match="has no drawing"):
            call()


COLUMNS = st.sampled_from(["ts", "symbol", "price", "paid", "day", "rate", "odd"]).flatmap(
    lambda name: st.sampled_from([name, f"S.{name}", f"D.{name}", f"U.{name}"])
)
VALUES = st.sampled_from(["1", "0.5", "2e0", "'A'", "NULL", "TRUE", "2 days", "DATE '2024-05-01'", "1.25"])
OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "=", "<", "AND", "OR"])


def composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, OPERATORS, inner),
        st.builds(
            "{}({})".format, st.sampled_from(["PREV", "NEXT", "FIRST", "FINAL LAST", "abs", "round", "sqrt", "length", "lower"]), inner
        ),
        st.builds("{}({})".format, st.sampled_from(["sum", "FINAL avg", "min", "max", "count", "median"]), inner),
        st.builds("count(DISTINCT {})".format, inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, inner, inner, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["coalesce", "least", "nullif"]), inner, inner),
        st.builds("{} IS NULL".format, inner),
        st.builds("{} BETWEEN {} AND {}".format, inner, inner, inner),
    )


EXPRESSIONS = st.recursive(COLUMNS | VALUES | st.sampled_from(["CLASSIFIER()", "MATCH_NUMBER()", "count(*)"]), composed, max_leaves=5)
WIDE = TICKS.append_column("rate", pa.array([0.5, None, float("nan"), float("inf"), -1.0, 2.0], pa.float32())).append_column(
    "odd", pa.array([1, 0, 3, None, 255, 7], pa.uint8())
)


@given(EXPRESSIONS, st.sampled_from(["ONE ROW PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"]))
def test_any_measure_has_values_of_its_type_or_a_fault(expression, rows):
    clauses = f"ORDER BY ts MEASURES {expression} AS m {rows} {FALL.replace(' DEFINE', ' SUBSET U = (S, D) DEFINE')}"
    try:
        found = ask(clauses, WIDE)
    except CepError:
        return
    found.validate(full=True)
    assert ask(clauses, WIDE.slice(0, 0)).schema == found.schema


def test_plans_are_remembered_by_text_and_by_tree(monkeypatch):
    planned = []
    monkeypatch.setattr(planner, "plan_row_pattern", lambda *given: planned.append(given) or plan_row_pattern(*given))
    text = "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS remembered PATTERN (A+) DEFINE A AS price > 0)"
    found = [cep.match(TICKS.slice(0, rows), text) for rows in (3, 5)]
    assert len(planned) == 1
    assert found == [cep.match(TICKS.slice(0, rows), cep.parse(text)) for rows in (3, 5)]
    cep.explain(TICKS, text)
    cep.report(TICKS, cep.parse(text))
    assert len(planned) == 2
    cep.match(TICKS.append_column("more", TICKS["ts"]), text)
    cep.match(TICKS, text, threads=1, engine="cpu", max_steps=9)
    assert len(planned) == 4
    for _ in range(2):
        cep.match(TICKS, text.replace("price > 0", "own(price) > 0"), functions={"own": own})
    assert len(planned) == 6


def own(x):
    return x + 1
