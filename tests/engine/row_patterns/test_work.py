"""The matcher of row patterns works in proportion to the rows, refuses what would explode, and can be bounded and paused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.events import stream_keys
from gpu_cep.engine.row_patterns import answers, dead_ends, labels, matching, pieces, reach, search_parts, searching
from gpu_cep.errors import MatchLimitExceeded, UnsupportedError
from gpu_cep_kernels.compile.jit import plain
from gpu_cep_kernels.row_patterns.matches import find_row_matches
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses
from tests.engine.row_patterns.test_answers import answer, check
from tests.oracle.row_patterns.test_answers import letters, matched_lengths


def ask(clauses: str, table: pa.Table, **keywords) -> pa.Table:
    return cep.match(table, f"MATCH_RECOGNIZE ({clauses})", **keywords)


EQUAL = ["A+ B+", "(A+ B+)+", "(A | B)*? C", "A+ B+ C", "(A* B*)* C", "^ A+ B+ $", "(A+)+ (B+)+", "PERMUTE(A+, B+, C)", "A{3,40} B?"]


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW"])
@pytest.mark.parametrize("pattern", EQUAL)
def test_each_row_is_looked_at_a_few_times(pattern, skip, monkeypatch):
    counts = []

    def counted(*arguments):
        find_row_matches(*arguments)
        counts.append(arguments[7].looks.sum())

    monkeypatch.setattr(matching, "find_row_matches", counted)
    for rows in (1000, 4000):
        last = ", C AS n < 0" if "C" in pattern else ""
        asked = f"ORDER BY n MEASURES count(*) AS k AFTER MATCH SKIP {skip} PATTERN ({pattern}) DEFINE A AS n >= 0, B AS n >= 0{last}"
        ask(asked, pa.table({"n": np.arange(rows)}), threads=1)
    assert counts[0] <= 45 * 1000
    assert counts[1] <= 4.1 * counts[0]


def test_rows_that_matches_share_are_followed_once(monkeypatch):
    monkeypatch.setattr("gpu_cep.engine.row_patterns.found.map_rows", None)
    rows = 5000
    asked = "count(*) AS k, FIRST(A.n) AS f, LAST(A.n) AS l, LAST(B.n) AS u, PREV(FIRST(B.n)) AS p"
    clauses = f"ORDER BY n MEASURES {asked} AFTER MATCH SKIP TO NEXT ROW PATTERN (A+ B+ C?) DEFINE A AS n >= 0, B AS n >= 0, C AS n < 0"
    found = ask(clauses, pa.table({"n": np.arange(rows)})).to_pydict()
    starts = list(range(rows - 1))
    assert found["f"] == starts
    assert found["k"] == [rows - start for start in starts]
    assert (set(found["l"]), set(found["u"]), set(found["p"])) == ({rows - 2}, {rows - 1}, {rows - 2})


DEAD = "ORDER BY n MEASURES count(*) AS k PATTERN (^ (A+ B+)+ C) DEFINE A AS n >= 0, B AS n >= FIRST(n), C AS n > FIRST(n) + 1000"


def test_dead_ends_are_not_searched_again():
    rows = 60
    assert ask(DEAD, pa.table({"n": np.arange(rows)}), max_steps=100 * rows).num_rows == 0
    with pytest.raises(MatchLimitExceeded, match="more than max_steps=100 steps, in a search whose conditions read the match so far"):
        ask(DEAD, pa.table({"n": np.arange(rows)}), max_steps=100)


FIXED = {
    "rows one behind the other": "PATTERN (A B C) DEFINE B AS B.x > A.x, C AS C.x > A.x + B.x",
    "the last row of a run": "PATTERN (A+ B) DEFINE B AS B.x > A.x + 1e9",
    "the row before in a run": "PATTERN (A B+) DEFINE B AS B.x < LAST(B.x, 1) OR LAST(B.x, 1) IS NULL AND B.x < A.x",
    "the first row of the match": "PATTERN (A B? C) DEFINE B AS B.x > FIRST(x), C AS C.x > LAST(x, 1)",
}


@pytest.mark.parametrize("kind", FIXED)
def test_conditions_on_rows_at_fixed_distances_are_labels(kind, monkeypatch):
    monkeypatch.setattr(matching, "search_matches", None)
    table = pa.table({"n": range(50), "x": np.random.default_rng(5).normal(size=50)})
    check(Drawn(f"ORDER BY n MEASURES FIRST(n) AS f, count(*) AS k {FIXED[kind]}", table))


# By how much more steps may be needed for four times the rows: 4 times for a share of the rows, 16 times for all pairs of them.
GROWTH = {
    "above the first": ("PATTERN (S B+) DEFINE B AS x > FIRST(x)", 7),
    "a running sum": ("PATTERN (A+) DEFINE A AS sum(A.z) <= 100", 7),
    "above the average": ("PATTERN (A{3} B+) DEFINE B AS x > avg(A.x)", 7),
    "as many": ("PATTERN (A+ B+) DEFINE B AS count(B.*) <= count(A.*)", 7),
    "runs that lead nowhere": ("PATTERN (A+ B+) DEFINE B AS LAST(B.n) < LAST(A.n)", 7),
    "the variable before": ("PATTERN ((A | B)* C) DEFINE C AS PREV(CLASSIFIER()) = 'Z'", 7),
    "the variable of the first": ("PATTERN ((A | B)+ C) DEFINE C AS FIRST(CLASSIFIER()) = 'Z'", 18),
    "the row before another run": ("PATTERN (A+ B+ C) DEFINE C AS n < LAST(A.n)", 18),
    "a first row that none follows": ("PATTERN (S B+ C) DEFINE B AS n > FIRST(n), C AS n < FIRST(n)", 18),
    "few values before another run": ("PATTERN (A+ B+ C) DEFINE C AS few < LAST(A.few) - 9", 4.5),
    "few values of the first": ("PATTERN (A+ B+ C) DEFINE C AS few < FIRST(few) - 9", 4.5),
    "few least values": ("PATTERN (A+ B+ C) DEFINE C AS few < min(A.few) - 9", 18),
}


@pytest.mark.parametrize("kind", GROWTH)
def test_steps_grow_no_faster_than_what_conditions_read(kind, monkeypatch):
    spent = []
    spend = search_parts.StepBudget.spend
    monkeypatch.setattr(search_parts.StepBudget, "spend", lambda account, steps: (spent.append(steps), spend(account, steps)))
    clauses, most = GROWTH[kind]
    counts = []
    for rows in (150, 600):
        random = np.random.default_rng(2)
        columns = {"n": np.arange(rows), "x": np.cumsum(random.normal(size=rows)), "z": random.integers(1, 20, rows)}
        columns["few"] = random.integers(0, 3, rows)
        spent.clear()
        ask(f"ORDER BY n MEASURES count(*) AS k {clauses}", pa.table(columns), threads=1, max_steps=5_000_000)
        counts.append(sum(spent))
    assert 0 < counts[1] <= most * counts[0]


def test_rows_of_matches_that_do_not_fit_in_memory_are_an_error(monkeypatch):
    monkeypatch.setattr(searching, "memory_for_results", lambda threads: 1 << 20)
    define = "PATTERN (A+ B*) DEFINE A AS n >= FIRST(n), B AS n < 0"
    rows = pa.table({"n": np.arange(2_000)})
    with pytest.raises(MatchLimitExceeded, match=r"have .* rows or more, .* do not fit in memory; shorten matches by WITHIN"):
        ask(f"ORDER BY n MEASURES count(*) AS k AFTER MATCH SKIP TO NEXT ROW {define}", rows, threads=1)
    assert ask(f"ORDER BY n MEASURES count(*) AS k {define}", rows, threads=1)["k"].to_pylist() == [2_000]


def test_memory_of_dead_ends_grows(monkeypatch):
    asked = f"ORDER BY n MEASURES count(*) AS k {GROWTH['the row before another run'][0]}"

    def steps(rows):
        explained = cep.explain(pa.table({"n": np.arange(rows)}), f"MATCH_RECOGNIZE ({asked})", run=True)
        return explained.counts["steps"]

    # of all pairs of rows none is forgotten
    pairs = 300 * 300 / 2
    assert steps(300) < 3.02 * pairs
    monkeypatch.setattr(dead_ends, "_DEAD_ENDS", 16)
    sizes = []
    grow = dead_ends.grown
    monkeypatch.setattr(searching, "grown", lambda memo, start: sizes.append(len(memo.keys)) or grow(memo, start))
    assert steps(300) < 3.1 * pairs
    assert max(sizes) > 16 * 8 * 8
    monkeypatch.setattr(dead_ends, "_MOST_BYTES", 1 << 12)
    sizes.clear()
    assert steps(30) > 4 * 30 * 30 / 2
    assert max(sizes) <= 1 << 12 >> 6


def test_rows_met_for_the_first_time_are_not_looked_up(monkeypatch):
    asked = []
    make = dead_ends.make_memo
    monkeypatch.setattr(searching, "make_memo", lambda *given: asked.append(make(*given)) or asked[-1])
    drops = "D AS coalesce(D.x < LAST(D.x, 1), D.x < S.x), U AS U.x > LAST(D.x)"
    table = pa.table({"n": np.arange(6), "x": [9, 5, 3, 4, 2, 8]})
    check(Drawn(f"ORDER BY n MEASURES count(*) AS k PATTERN (S D+ U) DEFINE {drops}", table))
    (memo,) = asked
    assert memo.useful.any()
    assert memo.farthest[0] < 0
    ask("ORDER BY n MEASURES count(*) AS k PATTERN (A+ B+ C) DEFINE C AS x < LAST(A.x) - 99", table)
    assert asked[1].farthest[0] > 0


def test_a_pattern_that_maps_no_row_reads_no_states(monkeypatch):
    monkeypatch.setattr(matching, "find_row_matches", plain(find_row_matches))
    check(Drawn("ORDER BY n MEASURES count(*) AS k PATTERN (X*?) WITHIN 2 EVENTS", letters("ab")))


@given(clauses(ALONE + BESIDE + READING))
def test_pauses_blocks_and_parts_change_nothing(drawn):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_parts.StepBudget, "STEPS", 3)
        patch.setattr(dead_ends, "_DEAD_ENDS", 2)
        patch.setattr(searching, "_FOUND", 1)
        patch.setattr(labels, "BLOCK", 2)
        patch.setattr(answers, "_MOST_ROWS", 2)
        patch.setattr(stream_keys, "RANKED", 1)
        patch.setattr(pieces, "_LEAST", 1)
        check(drawn, threads=2)


@pytest.fixture
def cut_anywhere(monkeypatch):
    monkeypatch.setattr(pieces, "_LEAST", 1)
    monkeypatch.setattr(pieces, "_NEAR", 0)


CUT = {
    "rows that go on": "PATTERN (A X*? B) DEFINE A AS c = 'a', B AS c = 'b'",
    "runs": "PATTERN (A+ X B+) DEFINE A AS c <> 'd', B AS c <> 'd'",
    "of three": "PATTERN (X X X)",
    "anchors": "PATTERN (^ X* B | A+ $) DEFINE A AS c <> 'a', B AS c = 'd'",
    "a window": "PATTERN (A X*? B C*) WITHIN 9 DEFINE A AS c = 'a', B AS c = 'b', C AS c < 'c'",
    "many states": "PATTERN (A X{60,70} B | C X{3}) DEFINE A AS c = 'a', B AS c = 'b', C AS c = 'c'",
    "rows beside": "PATTERN (A+ X) DEFINE A AS n - PREV(n) < 2 OR NEXT(c) = 'a'",
}


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW", "TO LAST X"])
@pytest.mark.parametrize("kind", CUT)
@pytest.mark.usefixtures("cut_anywhere")
def test_cuts_change_nothing(kind, skip):
    random = np.random.default_rng(3)
    for rows, keys in ((700, 1), (2_000, 4)):
        times = np.cumsum(random.integers(0, 3, rows))
        table = pa.table({"k": random.integers(0, keys, rows), "n": times, "c": random.choice(list("abcd"), rows)})
        clauses = CUT[kind].replace("PATTERN", f"AFTER MATCH SKIP {skip} PATTERN")
        asked = f"PARTITION BY k ORDER BY n MEASURES FIRST(n) AS f, LAST(n) AS l, count(*) AS m, MATCH_NUMBER() AS w {clauses}"
        whole, cut = (answer(Drawn(asked, table), "auto", threads=threads) for threads in (1, 13))
        assert cut == whole


@pytest.mark.parametrize("order", [[2, 3, 0, 1], [0, 1, 3, 2], [1, 0, 2, 3], [0, 1, 2, 3], [0, 2, 1, 3]])
@pytest.mark.usefixtures("cut_anywhere")
def test_pieces_are_in_order_only_if_they_follow_each_other(order):
    asked = "ORDER BY n MEASURES FIRST(n) AS f PATTERN (A)"
    for threads in (1, 2, 4):
        assert ask(asked, pa.table({"n": order}), threads=threads)["f"].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("window", "lengths"), [(0, [1, 1, 1, 1, 1, 1]), (3, [2, 1, 2, 1, 2, 1]), (2**63 - 1, [3, 3, 3, 3, 2, 1])])
def test_windows_of_times_from_the_first_to_the_last(window, lengths):
    limits = np.iinfo(np.int64)
    times = pa.table({"n": [limits.min, limits.min + 2, -1, 1, limits.max - 1, limits.max]})
    clauses = f"ORDER BY n MEASURES count(*) AS k AFTER MATCH SKIP TO NEXT ROW PATTERN (A+) WITHIN {window}"
    assert ask(clauses, times)["k"].to_pylist() == lengths


@pytest.mark.usefixtures("cut_anywhere")
def test_a_piece_has_no_fault_where_no_match_begins():
    define = "PATTERN (A X B | C) DEFINE A AS c = 'a', B AS c = 'b', C AS c = 'x'"
    for threads in range(2, 9):
        found = ask(f"ORDER BY n MEASURES FIRST(n) AS f AFTER MATCH SKIP TO LAST B {define}", letters("axb" * 50), threads=threads)
        assert found["f"].to_pylist() == list(range(0, 150, 3))


@pytest.mark.usefixtures("cut_anywhere")
def test_pieces_are_mended_until_they_are_as_they_were(monkeypatch):
    looked = []
    for name in ("mend_reach", "mend_wide_reach", "mend_earliest_ends"):
        mend = getattr(reach, name)
        monkeypatch.setattr(reach, name, lambda *arguments, mend=mend: looked.append(mend(*arguments)))
    random = np.random.default_rng(3)
    table = pa.table({"n": np.arange(10_000), "c": random.choice(list("abcd"), 10_000)})
    for kind in ("rows that go on", "many states", "a window"):
        ask(f"ORDER BY n MEASURES count(*) AS m {CUT[kind]}", table, threads=8)
    assert len(looked) == 3
    assert max(looked) < 1500
    assert min(looked) >= 7


many = st.sampled_from(
    ["X{70}", "(A|B){40,80}", "(A?B?){33}", "(A|BC|C){30,60}?", "(AB?){0,70}C", "((A|B)*C){20,}", "A{65}|B{65}|X{3}", "(AXX|BX){30,}"]
)


@given(many, st.text("abc", min_size=60, max_size=150), st.text("ab", min_size=60, max_size=90))
def test_patterns_of_many_states(pattern, text, other):
    spaced = pattern.replace("(AXX|BX)", "(A X X | B X)").replace("BC", "B C").replace("AB?", "A B?").replace("A?B?", "A? B?")
    spaced = spaced.replace("*C", "* C").replace(")C", ") C").replace("}C", "} C")
    define = "DEFINE A AS c = 'a', B AS c = 'b', C AS c = 'c'" if "C" in pattern else "DEFINE A AS c = 'a', B AS c = 'b'"
    define = define if "A" in pattern else ""
    for word in (text, other):
        found = ask(f"ORDER BY n MEASURES FIRST(n) AS f, count(*) AS k PATTERN ({spaced}) {define}", letters(word))
        expected = [(start if length else None, length) for start, length in matched_lengths(pattern, word)]
        assert list(zip(found["f"].to_pylist(), found["k"].to_pylist(), strict=True)) == expected


def test_a_permutation_of_seven():
    names = "ABCDEFG"
    define = ", ".join(f"{name} AS c = '{name.lower()}'" for name in names)
    asked = f"ORDER BY n MEASURES CLASSIFIER() AS v ALL ROWS PER MATCH PATTERN (PERMUTE({', '.join(names)})) DEFINE {define}"
    found = ask(asked, letters("agcbdefgfedcba"))
    assert "".join(found["v"].to_pylist()) == "AGCBDEFGFEDCBA"


LARGE = ["A{2049}", "(A B){1500}", "A{0,3000}", "PERMUTE(A+, B+, A, B, A, B, A, B)", f"PERMUTE({', '.join('ABCDEFGHIJKL')})", "(A{50}){50}"]


@pytest.mark.parametrize("pattern", LARGE)
def test_patterns_that_would_explode_are_refused(pattern):
    with pytest.raises(UnsupportedError, match="the pattern has more than 2,048 states"):
        ask(f"ORDER BY n MEASURES count(*) AS k PATTERN ({pattern})", letters("ab"))


def test_more_variables_than_bits_are_refused():
    pattern = " ".join(f"V{number}" for number in range(65))
    with pytest.raises(UnsupportedError, match="the pattern has 65 variables; at most 64 are supported"):
        ask(f"ORDER BY n MEASURES count(*) AS k PATTERN ({pattern})", letters("ab"))


@pytest.mark.parametrize("condition", ["median(n) > 1", "median(A.n) > FIRST(n)"])
def test_conditions_that_a_search_cannot_keep_are_named(condition):
    with pytest.raises(UnsupportedError, match=r"DEFINE … AS .*conditions read count, sum, avg, min and max"):
        ask(f"ORDER BY n MEASURES count(*) AS k PATTERN (A+) DEFINE A AS {condition}", letters("ab"))


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
@pytest.mark.parametrize("measure", ["LAST(A.s) + 1 ns", "LAST(A.s) - LAST(A.ns)", "COALESCE(LAST(A.s), LAST(A.ns))", "LAST(A.day) + 1 ns"])
def test_a_time_that_nanoseconds_cannot_hold_is_an_error_that_names_the_measure(measure, algorithm):
    far = {"s": pa.array([253_402_300_799], pa.timestamp("s")), "day": pa.array([2_932_896], pa.date32())}
    rows = pa.table({"ts": [1], "ns": pa.array([1], pa.timestamp("ns")), **far})
    text = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES {measure} AS late PATTERN (A) DEFINE A AS TRUE)"
    with pytest.raises(cep.EventError, match="integer overflow in measure 'late'"):
        cep.match(rows, text, algorithm=algorithm)


def test_overflow_is_an_error_that_names_the_row():
    table = pa.table({"n": [1, 2, 3], "x": [2**62, 2**62, 2**62]})
    for condition in ("x + PREV(x) > 0", "sum(x) > 0", "x + x > 0"):
        with pytest.raises(cep.EventError, match=r"overflow in .* at input row \d; 64 bits hold .*; 0e0 \+ [aA]\.x is a float"):
            ask(f"ORDER BY n MEASURES count(*) AS k PATTERN (A+) DEFINE A AS {condition}", table)
    with pytest.raises(cep.EventError, match=r"integer overflow in sum\(\) over the rows of a match; .*0e0 \+ A\.x is a float"):
        ask("ORDER BY n MEASURES sum(x) AS k PATTERN (A+)", table)
    assert ask("ORDER BY n MEASURES sum(0e0 + A.x) AS k PATTERN (A+)", table)["k"].to_pylist() == [3 * 2.0**62]


@pytest.mark.parametrize("pattern", ["A+", "A+ B?"])
@pytest.mark.parametrize("condition", ["count(x * 4) >= 0", "count(x * 4 + y) >= 0", "max(x * 4 + y) > 0", "avg(x * 4 + y) > 0"])
def test_a_total_of_what_cannot_be_computed_is_an_error(pattern, condition):
    table = pa.table({"n": [1, 2, 3], "x": [1, 2**62, 3], "y": [0.5, 0.5, 0.5]})
    with pytest.raises(cep.EventError, match=r"integer overflow in DEFINE … AS .* at input row 1"):
        ask(f"ORDER BY n MEASURES count(*) AS k PATTERN ({pattern}) DEFINE A AS {condition}", table)
    shielded = f"ORDER BY n MEASURES count(*) AS k PATTERN ({pattern}) DEFINE A AS x < 4 AND {condition}"
    assert ask(shielded, table)["k"].to_pylist()[0] >= 1


def test_an_empty_match_behind_others_has_no_total():
    asked = "ORDER BY n MEASURES sum(n) AS s, count(A.n) AS k ALL ROWS PER MATCH PATTERN (A*) DEFINE A AS c = 'a'"
    found = ask(asked, letters("aab"))
    assert found["s"].to_pylist() == [0, 1, None]
    assert found["k"].to_pylist() == [1, 2, 0]


@pytest.mark.parametrize("rows", ["", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"])
@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW", "TO LAST B"])
@pytest.mark.parametrize("window", ["", "WITHIN 200"])
def test_a_search_finds_what_labels_decide(rows, skip, window):
    random = np.random.default_rng(7)
    table = pa.table({"k": random.integers(0, 40, 20_000), "n": np.arange(20_000), "c": random.choice(list("abcd"), 20_000)})
    asked = f"PARTITION BY k ORDER BY n MEASURES FIRST(A.n) AS f, LAST(B.n) AS l, count(*) AS m, MATCH_NUMBER() AS w, sum(n) AS s {rows}"
    pattern = f"AFTER MATCH SKIP {skip} PATTERN (A (A | X)*? (B A?)+ C?) {window} DEFINE A AS c = 'a', C AS c = 'c', B AS c = 'b'"
    labelled, searched = (ask(f"{asked} {pattern}{more}", table, threads=2) for more in ("", " AND count(*) > 1"))
    assert labelled.num_rows > 500
    assert labelled == searched
