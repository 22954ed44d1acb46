"""Define the public calls: check the arguments, have the query run or explained, hand over the result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from gpu_cep.choices import (
    AfterMatch,
    Algorithm,
    Allen,
    Detect,
    Engine,
    Nulls,
    Output,
    PruningStep,
    Result,
    Strategy,
    TableOutput,
    Ties,
    TimeUnit,
)
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.errors import PatternError
from gpu_cep.keywords import (
    ExplainOptions,
    Functions,
    Names,
    TableOptions,
    Tuning,
    check_profile,
    check_threads,
    make_options,
    make_settings,
    read_keywords,
)
from gpu_cep.match_runs import find_matches, read_matches
from gpu_cep.plan.explain import Explanation
from gpu_cep.plan.interval_explain import IntervalExplanation
from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
from gpu_cep.plan.settings import memory_bytes
from gpu_cep.queries.plans import events_and_pattern, explain_alone, refuse_swapped
from gpu_cep.queries.runs import MatchCall, check_engine
from gpu_cep.result_forms import handed_over, result_form
from gpu_cep.signatures import checks_keywords, takes_keywords

if TYPE_CHECKING:
    import cudf
    import duckdb
    import pandas
    import polars
    import pyarrow as pa

    from gpu_cep.engine.compressed.compressed import Compressed
    from gpu_cep.queries.plans import Pattern


@overload
def match(
    events: Any, pattern: Pattern, *, output: Literal["compressed"], result: Literal["arrow"] = ..., **keywords: Unpack[TableOptions]
) -> Compressed: ...
@overload
def match(
    events: Any, pattern: Pattern, *, output: TableOutput = ..., result: Literal["arrow"] = ..., **keywords: Unpack[TableOptions]
) -> pa.Table: ...
@overload
def match(
    events: Any, pattern: Pattern, *, output: TableOutput = ..., result: Literal["pandas"], **keywords: Unpack[TableOptions]
) -> pandas.DataFrame: ...
@overload
def match(
    events: Any, pattern: Pattern, *, output: TableOutput = ..., result: Literal["polars"], **keywords: Unpack[TableOptions]
) -> polars.DataFrame: ...
@overload
def match(
    events: Any, pattern: Pattern, *, output: TableOutput = ..., result: Literal["duckdb"], **keywords: Unpack[TableOptions]
) -> duckdb.DuckDBPyRelation: ...
@overload
def match(
    events: Any, pattern: Pattern, *, output: TableOutput = ..., result: Literal["cudf"], **keywords: Unpack[TableOptions]
) -> cudf.DataFrame: ...


@overload
def match(
    events: Any, pattern: Pattern, *, output: TableOutput = ..., result: Literal["reader"], **keywords: Unpack[TableOptions]
) -> pa.RecordBatchReader: ...


@checks_keywords
def match(
    events: Any,
    pattern: Pattern,
    *,
    timestamp: str = "ts",
    partition_by: Names = None,
    order_by: Names = None,
    type_column: str = "type",
    strategy: Strategy | None = None,
    ties: Ties = "strict",
    time_unit: TimeUnit | None = None,
    nulls: Nulls = "error",
    after_match: AfterMatch = "all",
    limit_per_start: int | None = None,
    order_matches_by: str | None = None,
    detect: Detect = "final",
    allen: Allen = "paper",
    gap: float | str | None = None,
    engine: Engine = "auto",
    gpu_memory: int | str | None = None,
    algorithm: Algorithm = "auto",
    output: Output = "matches",
    result: Result = "arrow",
    columns: Names = None,
    timeouts: bool = False,
    detected_at: bool = False,
    max_matches: int | None = None,
    max_steps: int | None = None,
    prune: bool | Iterable[PruningStep] = True,
    functions: Functions = None,
    threads: int | None = None,
    memory: int | str | None = None,
    complete_until: Any = None,
    profile: Profile | None = None,
    tuning: Tuning | None = None,
) -> Any:
    """Find the matches of `pattern` in `events`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import gpu_cep as cep
    >>> trades = pa.table({"ts": [1, 2, 3, 4], "type": ["Buy", "Quote", "Buy", "Sell"], "price": [10, 12, 8, 9]})
    >>> pattern = "PATTERN SEQ(Buy b, Sell s) WHERE s.price < b.price WITHIN 5 RETURN b.price AS bought, s.price AS sold"
    >>> cep.match(trades, pattern).to_pylist()
    [{'match_start': 1, 'match_end': 4, 'bought': 10, 'sold': 9}]

    Parameters
    ----------
    events
        The events, sorted or not, in one of four forms. A table: anything
        with the Arrow C stream interface (pyarrow, pandas, polars, duckdb …)
        or a path to CSV, lines of JSON or Arrow IPC, also with ``.gz`` or
        ``.zst`` behind it. A source: a path to Parquet, a
        pyarrow.dataset.Dataset, a polars.LazyFrame or a relation of DuckDB;
        only the columns that the query needs are read, and of Parquet only the
        row groups that may hold an event of a match. Data on a GPU, which
        stays there: a cudf.DataFrame, or a mapping of names to arrays
        (``__cuda_array_interface__``). Batches: a pyarrow.RecordBatchReader or
        an iterator of record batches. A path may be a glob
        (``logs/*.csv.gz``), a URI (``s3://bucket/events.parquet``) or an object
        that stands for one, as of pathlib and universal_pathlib; of Parquet
        also a folder. A list of paths stands for all their files in this order.
    pattern
        The query: its text, the result of :func:`parse`, or one built in Python.
        Or SQL's ``MATCH_RECOGNIZE (…)``, whose clauses stand for most of the keywords.
    timestamp
        The column of occurrence times: an integer, float, date or timestamp.
    partition_by
        The columns whose values split the events into independent streams.
        NULL is a value like any other here.
    order_by
        The columns that order events of equal time. Events that these leave
        equal are ordered by input position.
    type_column
        The column that holds the event type: ``Trade t`` binds events whose
        value in it is ``'Trade'``.
    strategy
        The event selection strategy of a query whose text names none:
        ``skip_till_next_match`` (default), ``robust_skip_till_next_match``,
        ``skip_till_any_match``, ``partition_contiguity`` or ``strict_contiguity``.
    ties
        When an event is before another. ``strict``: if its time is less.
        ``position``: if it precedes the other in the stream's order.
    time_unit
        The unit of a bare number (ns, us, ms, s, minutes, hours, days, weeks).
        Over a timestamp of integers or floats it is the length of one tick;
        lengths with a unit, such as ``WITHIN 5 minutes``, need it there. Over
        dates and timestamps it says what a length without a unit counts;
        ``WITHIN 5`` is an error there without it.
    nulls
        What an event is whose timestamp is NULL or NaN. ``error``: an EventError.
        ``drop``: it is left out, as if it were not among the events; row numbers
        are those of the events as given.
    after_match
        Which matches are kept. ``all``: every match. ``skip_past_last``: each
        stream's matches are taken in order of completion, and a match is kept
        if it begins behind the last one kept. ``skip_to_next``: for each first
        event, the match that completes first.
    limit_per_start
        The most matches that are kept of those with one first event (default:
        all). Those are kept that come first in the order of results.
    order_matches_by
        An expression of the match, such as ``"sum(b.x) desc"``, by which
        `limit_per_start` keeps matches instead. It is written as an item of
        RETURN, with ``asc`` (default) or ``desc`` behind it. NaN comes behind
        all numbers, and NULL behind NaN, in either direction. Of equal matches
        those are kept that come first in the order of results.
    detect
        When a match of an interval pattern is reported. ``final``: when its
        situations have ended. ``early``: as soon as the events so far decide
        it, even if a situation has not ended; ``detected_at`` says when.
    allen
        How `finishes` between situations is read. ``paper``: as Table 1 of
        TPStream prints it, the left one starts first and both end together.
        ``1983``: as Allen defined it, the right one starts first.
    gap
        The most time that may pass between two events in a row of a
        situation: a number, which counts as in ``WITHIN 5``, or text such as
        ``"30 seconds"``. If more passes, the situation ends that much after its
        last event, and another may begin (default: no limit).
    engine
        Where phase 1 (properties, streams, order, windows) runs. All later
        work runs on the CPU, and the matches are the same. ``cpu``: on the
        CPU. ``gpu``: on a CUDA card, or an error says why not. ``auto``: on a
        card if there is one, and if moving the events there takes less time
        than phase 1 on the CPU; the reason against is logged once. Interval
        patterns run on the CPU unless ``gpu`` is asked for, and so do the
        labels of MATCH_RECOGNIZE.
    gpu_memory
        How much of a card's memory to use: a number of bytes, or text such as
        ``"8GB"`` or ``"512MiB"`` (default: a share of what is free). Events
        that do not fit at once are worked on in pieces.
    algorithm
        How matches are found. ``auto``: each batch of events takes the
        algorithm with the least expected cost. ``ses_automaton`` and
        ``backtracking`` run every query, ``nfab`` all but
        robust_skip_till_next_match. ``lazy_chain`` and ``lazy_tree`` run
        skip_till_any_match; they are good if variables
        differ in how many events fit them, over all events or from window to
        window. ``join_tree`` runs skip_till_any_match without quantifiers; it
        is good if windows are long, and conditions demand equal values or let
        few combinations pass. ``brute_force`` is for small input only. For
        interval patterns ``auto`` is ``range_join``; ``end_join`` and
        ``nested_loop`` are there for comparison.
    output
        What the result holds. ``matches``: a row per match, for interval
        patterns with ``detected_at``. ``events``: a row per matched event.
        ``indices``: input row numbers per variable. ``count``: the number of
        matches of each stream that has any. ``compressed``: a
        :class:`~gpu_cep.Compressed`, all matches as a graph that enumerates
        and counts them. RETURN says what the rows of ``matches`` hold; all other
        outputs are the same with it and without it.
    result
        ``arrow`` for a pyarrow.Table, ``pandas`` (with Arrow's types), ``polars``
        or ``cudf`` for a DataFrame, ``duckdb`` for a relation. ``reader`` for a
        pyarrow.RecordBatchReader: matches are found when they are read, in files
        that do not fit in memory one slice of time after the other. The rows of
        a slice are in order, and slices come in the order of time; an error in
        the events is raised by reading. Events that come batch by batch are then
        read while matches are, and only those of a window are kept; each batch
        must not begin before the time at which the one before it ends.
    columns
        The input columns that whole events carry in the output (default: all).
        Indices and counts, which hold no events, are the same with it and without;
        a name that is no column is an error with every `output`.
    timeouts
        Whether timeouts come out beside the matches. A timeout stands for an
        event that begins a run which becomes no match: it holds the longest
        prefix that the strategy would have bound, and comes when the window is
        over. Rows then begin with a column `kind`, ``match`` or ``timeout``, and
        end with `detected_at`, when the row is certain, and `missing`, the names
        of the variables that bind too few events. A variable that binds none is
        NULL. This goes with ``skip_till_next_match`` and contiguity, and with a
        window of time; matches come first.
    detected_at
        Whether each match says when it is certain: rows then end with a column
        `detected_at`, the time from which on no further event can change the
        match. That is the time of its last event, or later: a pattern that ends
        with a negation, or with a variable that binds many events, is certain
        when its window is over. Rows of situations and of timeouts have it
        anyway.
    max_matches, max_steps
        Upper bounds on the number of matches, and on the work done to find
        them. Reaching one raises MatchLimitExceeded.
    prune
        Which pruning steps may be used: True (all), False (none) or some of
        ``filter``, ``reach``, ``partition``, ``lift``, ``summary``, ``chain``,
        ``overlap``. The matches are the same either way.
    functions
        Functions that conditions and RETURN may call, by name: Python
        functions of numbers and truth values that Numba can compile. They run
        on the CPU. The result is NULL if an argument is NULL, or if the
        function returns None.
    threads
        How many threads to use (default: all cores of the process).
    memory
        How much memory events that are read may take: a number of bytes, or
        text such as ``"2GiB"`` (default: a share of what is free). Parquet files
        that do not fit at once are matched in slices of time, where the query
        has a window of time; else an UnsupportedError says what is needed. The
        result comes on top. Tables are in memory already.
    complete_until
        A value of the timestamp column up to which all events are there (default:
        all events are there); a day over timestamps without a zone is its first
        moment. Later ones are left out, and only the matches are found that no
        further event can change: a negation at the end, say, is judged when its
        window is over. As streams do it, see :class:`~gpu_cep.Stream`.
    profile
        Receives the counts and the seconds of each stage of the run.
    tuning
        A :class:`~gpu_cep.Tuning`, which holds `algorithm`, `prune`, `threads`,
        `max_steps`, `gpu_memory` and `profile` for many calls.

    Returns
    -------
    pyarrow.Table, another table, RecordBatchReader or Compressed
        As `result` and `output` ask. The rows of a table are ordered by
        stream key, first event, last event and bindings.

    Raises
    ------
    PatternSyntaxError, PatternError, UnsupportedError
        The query has an error, or this release cannot run it. PatternError
        also says that `events` and `pattern` changed places.
    EventError
        The events have an error, such as a NULL timestamp.
    EngineUnavailable
        `engine` cannot run here, or the package for `result` is not
        installed; the message says why.
    MatchLimitExceeded
        A bound was reached. Results are never truncated.

    Warns
    -----
    AbsentValueWarning
        There is no match, and the query asks for a type or another text that no event has.
    """
    refuse_swapped("match", events, pattern)
    check_threads(threads)
    check_profile(profile)
    allowed = memory_bytes(memory, "memory")
    settings = make_settings(
        after_match=after_match, limit_per_start=limit_per_start, order_matches_by=order_matches_by,
        engine=engine, gpu_memory=gpu_memory, algorithm=algorithm, output=output, columns=columns,
        max_matches=max_matches, max_steps=max_steps, prune=prune, timeouts=timeouts, detected_at=detected_at,
    )  # fmt: skip
    options = make_options(
        timestamp=timestamp, partition_by=partition_by, order_by=order_by, type_column=type_column, strategy=strategy, ties=ties,
        time_unit=time_unit, nulls=nulls, detect=detect, allen=allen, gap=gap, functions=functions,
    )  # fmt: skip
    check_engine(settings)
    hand_over = result_form(result, output)
    call = MatchCall(pattern, options, settings, allowed, threads, profile, complete_until)
    return read_matches(call, events) if result == "reader" else handed_over(find_matches(call, events), hand_over)


@takes_keywords(match, ExplainOptions)
def explain(
    events: Any = None,
    pattern: Pattern | None = None,
    *,
    run: bool = False,
    **keywords: Unpack[ExplainOptions],
) -> Explanation | IntervalExplanation | RowPatternExplanation:
    """Explain how a query will be answered; the result prints itself.

    ``explain(events, pattern)`` binds the query to the events, and says which
    engine would run it here, and why. ``explain(pattern)`` shows the query
    alone, since there is no schema to bind it to.

    Parameters
    ----------
    events, pattern
        As in :func:`match`; a table without rows is enough.
    run
        Whether to run the query and drop its result. The explanation then
        says which algorithm answered each batch of events, compares expected
        with actual counts, and, unless files are read in slices of time, says
        how many events each variable may bind.
    **keywords
        As in :func:`match`.

    Returns
    -------
    Explanation, IntervalExplanation or RowPatternExplanation
        The explanation of an event pattern, an interval pattern or MATCH_RECOGNIZE.

    Raises
    ------
    PatternError
        `run` is set without events.
    CepError
        Any error that :func:`match` raises; EngineUnavailable only with `run`.
    """
    given, asked = events_and_pattern(events, pattern)
    options, settings = read_keywords(keywords)
    if given is None and run:
        raise PatternError("a query runs over events; give explain() some, or leave run out")
    allowed = memory_bytes(keywords.get("memory"), "memory")
    if given is None:
        return explain_alone(asked, settings)
    from gpu_cep.explanations import explain_any, explain_run

    call = MatchCall(asked, options, settings, allowed, keywords.get("threads"))
    return explain_run(call, given, keywords.get("profile")) if run else explain_any(call, given)
