"""Files that are matched slice by slice answer as the table does: the same rows, order, numbers, warnings and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from gpu_cep import sliced_plans
from gpu_cep.engine.input import grouped_files, parquet_files
from gpu_cep.engine.input.time_cut import cut_by_number
from gpu_cep.engine.slices.budget import Choice
from tests.conformance.test_untimed_events import holes
from tests.drawn.neighbours import neighbour_cases
from tests.drawn.queries import AFTER_MATCH, Case, trend_cases, whole_language
from tests.effort import examples
from tests.engine.input.test_parquet_files import files_of, sifted_cases, told

OUTPUTS = ("matches", "events", "indices", "count")
CASES = st.one_of(whole_language(max_size=16), trend_cases(after_match=AFTER_MATCH), neighbour_cases(), sifted_cases())


@contextmanager
def in_slices(number: int, rows: int = 3) -> Iterator[list[int]]:
    """Let files be cut into at most so many slices, and gather how many each run has; `rows` are read at a time for counts."""
    taken: list[int] = []

    def chosen(files: Any, reach: Any, memory: Any) -> Choice:
        cut = cut_by_number(files.groups, reach, number)
        taken.append(len(cut.slices))
        return Choice(cut, 0)

    with (
        patch.object(sliced_plans, "choose_cut", chosen),
        patch.object(sliced_plans, "_MANY_ROWS", 0),
        patch.object(parquet_files, "_SOME_ROWS", 1),
        patch.object(grouped_files, "_ROWS", rows),
    ):
        yield taken


def with_window(case: Case) -> Case:
    """The query with a window, without which it is not cut."""
    return case if "WITHIN" in case.text.upper() else Case(f"{case.text} WITHIN 3", case.events, case.options)


@examples(200, 2_000)
@given(CASES, st.sampled_from(OUTPUTS), st.sampled_from((None, *AFTER_MATCH)), st.integers(2, 8), st.data())
def test_slices_answer_as_the_table_does(case, output, after_match, number, data):
    case, options = with_window(case), {} if after_match is None else {"after_match": after_match}
    events = case.events
    if data.draw(st.booleans()):
        events = events.sort_by(case.options.get("timestamp", "ts"))
    nulls = data.draw(st.sampled_from((None, None, "error", "drop")))
    if nulls is not None and "nulls" not in case.options:
        events, _ = data.draw(holes(events, case.options.get("timestamp", "ts")))
        options["nulls"] = nulls
    case = Case(case.text, events, {name: value for name, value in case.options.items() if name not in options})
    group, cut = data.draw(st.sampled_from((1, 1, 2, 3))), data.draw(st.integers(0, events.num_rows))
    files = files_of(events, group, cut, data.draw(st.sampled_from(("file", "folder", "glob", "dataset"))))
    with files as (given_, table):
        expected = told(table, case, output=output, **options)
        with in_slices(number):
            assert told(given_, case, output=output, **options) == expected
