"""Faults in what is read of files, and where they lie."""

from __future__ import annotations

from tests.mutants.fault import Fault

_FILTER, _PARQUET = "gpu_cep/engine/input/event_filter.py", "gpu_cep/engine/input/parquet_files.py"
_CUT, _GROUPED = "gpu_cep/engine/input/time_cut.py", "gpu_cep/engine/input/row_groups.py"
_CARRIED, _SITUATIONS = "gpu_cep/engine/slices/carried_events.py", ("tests/engine/slices/test_situations.py",)
_LOADING = "gpu_cep/engine/slices/loading.py"
_SLICED, _ANSWERS = ("tests/engine/input/test_time_cut.py",), ("tests/engine/slices/test_slices.py",)
_GROUPS = ("tests/engine/input/test_parquet_files.py",)
_SETTLING, _SETTLED = "kernels/gpu_cep_kernels/matches/flat_matches.py", ("tests/engine/events/test_settling.py",)

FILES = (
    Fault(
        "row-groups-at-the-end-of-a-window-are-far",
        "gpu_cep/engine/input/near_groups.py",
        'np.searchsorted(earliest, high, side="right")',
        'np.searchsorted(earliest, high, side="left")',
        _GROUPS,
    ),
    Fault(
        "near-groups-of-all-branches",
        "gpu_cep/engine/input/near_groups.py",
        "found |= near",
        "found = near",
        _GROUPS,
    ),
    Fault(
        "row-groups-in-the-order-of-a-set",
        _PARQUET,
        "else fragment.subset(row_group_ids=groups)",
        "else fragment.format.make_fragment(fragment.path, fragment.filesystem, row_groups=groups)",
        _GROUPS,
    ),
    Fault(
        "nan-equals-what-statistics-know",
        _FILTER,
        'column is None or (name == "ne" and _is_float(field))',
        "column is None",
        _GROUPS,
    ),
    Fault(
        "float-bound-rounded-inwards",
        _FILTER,
        "near = np.nextafter(near, np.float32(np.inf if comparison in",
        "near = np.nextafter(near, np.float32(-np.inf if comparison in",
        _GROUPS,
    ),
    Fault(
        "negated-variables-not-asked-for",
        _FILTER,
        "for number in range(len(plan.query.variables))",
        "for number in range(len(plan.query.positives))",
        _GROUPS,
    ),
    Fault(
        "failing-tests-left-out",
        _FILTER,
        "all(_is_total(conjunct) for _, conjunct, _ in property_conjuncts(query))",
        "True",
        _GROUPS,
    ),
    Fault("missing-times-left-out", "gpu_cep/engine/input/judged_groups.py", "and known.null_count == 0", "", _GROUPS),
    Fault("rows-numbered-as-read", _PARQUET, "np.flatnonzero(np.repeat(marks, sizes))", "None", _GROUPS),
    Fault(
        "numbers-of-events-with-a-time",
        "gpu_cep/engine/input/input_events.py",
        "self.numbers if rows is None else self.numbers[rows]",
        "self.numbers if rows is None else rows",
        _GROUPS,
    ),
    Fault(
        "text-left-out-called-absent",
        "gpu_cep/queries/runs.py",
        "if events.read_all is None:",
        "if True:",
        _GROUPS,
    ),
    Fault(
        "ranges-where-there-are-none",
        "gpu_cep/engine/input/file_systems.py",
        "return None if len(asked) == 1 else bytes(asked)",
        "return None",
        ("tests/engine/input/test_file_systems.py",),
    ),
    Fault("windows-do-not-reach-beyond-slices", _CUT, "window_end(time, reach.window)", "time", _SLICED),
    Fault("negations-do-not-look-back-beyond-slices", _CUT, "if not reach.back:", "if True:", _SLICED),
    Fault("late-groups-hidden-behind-later-ones", _CUT, "np.maximum.accumulate(latest)", "latest", _SLICED),
    Fault("groups-without-statistics-in-one-slice", _GROUPED, "unknown[1][timeless] = lowest", "unknown[1][:] = lowest", _SLICED),
    Fault(
        "matches-taken-before-they-are-certain",
        "gpu_cep/engine/slices/disjoint.py",
        "if later is None or not waits else last[0] < begins[streams]",
        "",
        _ANSWERS,
    ),
    Fault(
        "taken-matches-forgotten-with-their-slice",
        "gpu_cep/engine/slices/disjoint.py",
        "taken[:0] if later is None else taken[last[0][taken] >= begins[streams[taken]]]",
        "still_open[:0]",
        _ANSWERS,
    ),
    Fault("slices-settle-what-earlier-ones-may-overlap", _SETTLING, " and (late[m] or not outside)", "", _SETTLED),
    Fault("slices-settle-what-ends-in-a-later-one", _SETTLING, "possible and early[m] and", "possible and", _SETTLED),
    Fault("slices-settle-chains-that-hang-together", _SETTLING, "and behind == count", "", _SETTLED),
    Fault(
        "slices-settle-a-stream-by-the-one-before",
        _SETTLING,
        "stream, front, outside = streams[m], count, True",
        "stream = streams[m]",
        _SETTLED,
    ),
    Fault("slices-keep-what-overlaps-a-settled-match", _SETTLING, "            if possible:", "            if True:", _SETTLED),
    Fault("slices-drop-what-follows-one-that-others-drop", _SETTLING, "            if early[m]:", "            if True:", _SETTLED),
    Fault(
        "settled-matches-counted-once",
        "gpu_cep/engine/output/result_tables.py",
        "np.diff(borders, append=len(counted))",
        "np.ones(len(borders), np.int64)",
        _SETTLED,
    ),
    Fault(
        "matches-numbered-anew-in-each-slice",
        "gpu_cep/engine/slices/assembly.py",
        "numbers = counts[own] + through - 1 - earlier",
        "numbers = through - 1 - earlier",
        _ANSWERS,
    ),
    Fault(
        "situations-begin-anew-in-each-slice",
        "gpu_cep/queries/sliced_runs.py",
        "all_there, own.end)",
        "all_there, own.begin)",
        _SITUATIONS,
    ),
    Fault("the-last-event-read-is-carried", _CARRIED, "np.maximum.at(latest, streams, times)", "pass", _SITUATIONS),
    Fault("ties-carried-in-any-order", _CARRIED, 'rows[np.argsort(ranks, kind="stable")] if ranks.size else rows', "rows", _SITUATIONS),
    Fault(
        "gaps-without-a-later-event",
        "gpu_cep/queries/sliced_runs.py",
        "if run.sliced.needs_later_events else",
        "if False else",
        _SITUATIONS,
    ),
    Fault("windows-cut-off-at-slices", _LOADING, 'np.searchsorted(piece, most, side="right")', "np.searchsorted(piece, most)", _ANSWERS),
    Fault("pieces-of-times-out-of-order", _LOADING, "later[0] < earlier[-1]", "False", _ANSWERS),
    Fault("shared-row-groups-out-of-order", _LOADING, "(begins[1:] == begins[:-1] + sizes[:-1])", "True", _ANSWERS),
    Fault(
        "rows-numbered-as-written-in-order",
        "gpu_cep/engine/input/grouped_files.py",
        "held = table.column(self._numbers).to_numpy()",
        "held = np.arange(table.num_rows)",
        _ANSWERS,
    ),
    Fault(
        "files-that-changed-are-read",
        "gpu_cep/engine/input/file_changes.py",
        "if state != before[path]",
        "if False",
        ("tests/engine/input/test_file_changes.py",),
    ),
    Fault(
        "old-calendars-read-as-today-s",
        "spark_glue/gpu_cep_spark/files/types.py",
        "if dated and _has_other_calendar",
        "if False and _has_other_calendar",
        ("tests/spark/files/test_writers.py",),
    ),
    Fault(
        "null-stays-among-the-values-of-dictionaries",
        "gpu_cep/engine/input/encodings.py",
        "bool(array.dictionary.null_count)",
        "False",
        ("tests/engine/input/test_encodings.py",),
    ),
    Fault(
        "large-whole-numbers-are-floats",
        "gpu_cep/engine/input/large_integers.py",
        "most >= _BEYOND",
        "most > _BEYOND",
        ("tests/engine/input/test_large_integers.py",),
    ),
    Fault(
        "records-of-json-end-with-lines",
        "gpu_cep/engine/input/json_lines.py",
        "_BEGIN.search(text, end)",
        "re.compile(r'\\n.').search(text, end)",
        ("tests/engine/input/test_large_integers.py",),
    ),
    Fault(
        "a-code-beyond-the-last-value-is-read",
        "gpu_cep/engine/input/encodings.py",
        "greatest >= values",
        "greatest > values",
        ("tests/engine/input/test_damaged_codes.py",),
    ),
)
