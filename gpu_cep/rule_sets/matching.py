"""Match many patterns over the same events at once, and explain what they share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, get_args

from gpu_cep.api import match
from gpu_cep.choices import OnError
from gpu_cep.errors import (
    AbsentValueWarning,
    CepError,
    Diagnostic,
    FailedPatternWarning,
    PatternError,
    UnsupportedError,
    nearest,
    warn_caller,
)
from gpu_cep.keywords import MatchOptions, StreamOptions
from gpu_cep.result_forms import handed_over, result_form
from gpu_cep.rule_sets.explain import RuleSetExplanation, explain_rules
from gpu_cep.rule_sets.plans import PlannedRule, PlannedRules, plan_rules
from gpu_cep.rule_sets.rules import Rule, as_rules, check_split, naming, united
from gpu_cep.signatures import takes_keywords

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.queries.plans import Pattern
    from gpu_cep_spark.rule_sets.explain import SparkRuleSetExplanation

ON_ERROR = get_args(OnError)


@takes_keywords(match, MatchOptions)
def match_all(
    events: Any,
    patterns: Mapping[str, Pattern | Rule],
    *,
    on_error: OnError = "raise",
    failures: MutableMapping[str, CepError] | None = None,
    split: bool = False,
    **keywords: Unpack[MatchOptions],
) -> Any:
    """Find the matches of many patterns in the same events.

    Each pattern has the matches that :func:`match` finds for it. What the patterns share is done
    once: reading the events, encoding keys and texts, and looking up the constants with which
    they compare a column. A pattern whose events are few touches only these.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import gpu_cep as cep
    >>> steps = pa.table({"ts": [1, 2, 3, 4], "type": ["View", "Buy", "View", "Leave"]})
    >>> rules = {"bought": "PATTERN SEQ(View v, Buy b) WITHIN 5", "left": "PATTERN SEQ(View v, Leave x) WITHIN 5"}
    >>> cep.match_all(steps, rules, output="count").to_pylist()
    [{'pattern': 'bought', 'count': 1}, {'pattern': 'left', 'count': 2}]

    Parameters
    ----------
    events
        As in :func:`match`.
    patterns
        The patterns by name; a :class:`Rule` has options of its own, which take the place of the
        keywords of the call. :func:`load_rules` reads them from files.
    on_error
        ``raise``: the error of a pattern ends the call; errors that are known before matching
        are raised together. ``report``: it stops no other pattern, and is told by a
        FailedPatternWarning, or in `failures`. If all are wrong before matching, their errors
        are raised.
    failures
        Receives the error of each pattern that failed, by name.
    split
        Whether the result is a dictionary of tables by name, rather than one table.
    **keywords
        As in :func:`match`; ``result="reader"`` and `complete_until` are not supported, and
        ``output="compressed"`` is with `split` only. `max_matches` and `max_steps` are
        bounds for each pattern.

    Returns
    -------
    table, or dict of tables
        One table with the column ``pattern`` before those of :func:`match`; its rows are in
        the order of `patterns`. With `split`, the result of :func:`match` for each pattern
        that did not fail.

    Raises
    ------
    PatternError
        `patterns` is no mapping of names to patterns, or the results have not the same
        columns and cannot be one table.
    CepError
        Any error that :func:`match` raises. The message names the pattern.

    Warns
    -----
    AbsentValueWarning
        As :func:`match`; the message names the pattern.
    FailedPatternWarning
        A pattern failed, and the caller gave no `failures`.
    """
    # it loads the compiler
    from gpu_cep.engine.answers import answer_schema
    from gpu_cep.rule_sets.tables import check_columns, one_table

    rules = as_rules(patterns)
    check_error_choices(on_error, failures)
    _check_choices(split, keywords)
    hand_over = result_form(keywords.get("result", "arrow"), keywords.get("output", "matches"))

    def check(planned: Iterable[PlannedRule], failed: Mapping[str, CepError], schema: pa.Schema) -> None:
        if failed and (on_error == "raise" or len(failed) == len(rules)):
            raise united(failed)
        if not split:
            check_columns({each.name: answer_schema(each.plan, schema) for each in planned})

    given = plan_rules(events, rules, keywords, check)
    failed = dict(given.failed)
    found = _run(given, rules, keywords, failed, raises=on_error == "raise")
    if not split:
        found_table = one_table(found, failed)
    report_failures(failed, failures)
    if not split:
        return handed_over(found_table, hand_over)
    return {name: handed_over(table, hand_over) for name, table in found.items()}


def check_error_choices(on_error: object, failures: object) -> None:
    """Raise PatternError unless `on_error` and `failures` have values that :func:`match_all` takes."""
    if on_error not in ON_ERROR:
        message = f"on_error={on_error!r} is unknown; expected one of {', '.join(ON_ERROR)}"
        raise PatternError([Diagnostic(message, hint=nearest(str(on_error), ON_ERROR))])
    if failures is not None and not isinstance(failures, MutableMapping):
        raise PatternError(f"failures must be a dictionary, which receives the error of each failed pattern, not {failures!r}")


def _check_choices(split: object, keywords: Mapping[str, Any]) -> None:
    """Raise UnsupportedError unless many patterns may have such a result, and PatternError if `split` is no choice."""
    check_split(split)
    if keywords.get("result") == "reader":
        raise UnsupportedError("result='reader' is not supported for many patterns; supported: arrow, pandas, polars, duckdb, cudf")
    if keywords.get("output") == "compressed" and not split:
        raise UnsupportedError("output='compressed' is not supported for one table of many patterns; give split=True")
    if keywords.get("complete_until") is not None:
        raise UnsupportedError("complete_until= is not supported for many patterns; give it to match(), for each pattern")


def _run(
    given: PlannedRules, rules: Mapping[str, Rule], keywords: Mapping[str, Any], failed: dict[str, CepError], *, raises: bool
) -> dict[str, pa.Table]:
    """Return the result of each rule that does not fail, in the order of the rules; `failed` receives the errors of the others."""
    from gpu_cep.engine.accounting.resources import Resources
    from gpu_cep.rule_sets.runs import absent_warnings, run_shared, share_events
    from gpu_cep_kernels.compile.launch import threads_of

    def fail(name: str, fault: CepError) -> None:
        if raises:
            raise fault
        failed[name] = fault

    threads = keywords.get("threads")
    sharing = share_events(given, threads_of(threads))
    found = run_shared(given, sharing, Resources(threads, keywords.get("profile")), fail)
    for sentence in absent_warnings(given, sharing, found):
        warn_caller(sentence, AbsentValueWarning)
    plain = {name: value for name, value in keywords.items() if name != "result"}
    for name in given.alone:
        try:
            with naming(name):
                found[name] = match(given.opened, rules[name].pattern, **{**plain, **rules[name].options})
        except CepError as fault:
            fail(name, fault)
    return {name: found[name] for name in rules if name in found}


def report_failures(failed: Mapping[str, CepError], failures: MutableMapping[str, CepError] | None) -> None:
    """Tell the caller which patterns failed."""
    if failures is not None:
        failures.update(failed)
        return
    for fault in failed.values():
        warn_caller(str(fault), FailedPatternWarning)


@takes_keywords(match, StreamOptions)
def explain_all(
    events: Any,
    patterns: Mapping[str, Pattern | Rule],
    *,
    rare: str | Sequence[str] | None = None,
    emit: str = "certain",
    every: float | str | None = None,
    late: str = "drop",
    time_to_live: float | str | None = None,
    **keywords: Unpack[StreamOptions],
) -> RuleSetExplanation | SparkRuleSetExplanation:
    """Explain how many patterns will be answered, and what they share; the result prints itself.

    Parameters
    ----------
    events, patterns
        As in :func:`match_all`. Events are read to count those that each group of patterns
        needs. Of a Spark DataFrame nothing is run: the result says which shuffles
        :func:`gpu_match_all` will take, and why. Of a streaming one it says which patterns
        share events in the state.
    rare
        As in :func:`gpu_match_all`, for a Spark DataFrame.
    emit, every, late, time_to_live
        As in :func:`gpu_match_all`, for a streaming DataFrame.
    **keywords
        As in :func:`match_all`.

    Returns
    -------
    RuleSetExplanation or SparkRuleSetExplanation
        Also holds the error of each pattern that has one, by name.

    Raises
    ------
    PatternError
        `patterns` is no mapping of names to patterns, or `rare` names no variables of theirs.
        Or a match of a pattern may bind none of the variables that `rare` names. Or a keyword
        of streams has a value that it does not take, or the DataFrame is no stream.
    UnsupportedError
        `rare` or a keyword of streams is given, and the events are no Spark DataFrame; or
        `rare` is, and no events can be left out.
    EventError
        The events cannot be read.
    """
    rules = as_rules(patterns)
    # a package that has not been imported made no DataFrame
    spark = sys.modules.get("pyspark.sql")
    if spark is not None and isinstance(events, spark.DataFrame):
        from gpu_cep_spark.rule_sets.explain import explain_spark_rules

        of_stream = {"emit": emit, "every": every, "late": late, "time_to_live": time_to_live}
        return explain_spark_rules(events, rules, rare, of_stream, keywords)
    of_streams = {"emit": emit != "certain", "every": every is not None, "late": late != "drop", "time_to_live": time_to_live is not None}
    _refuse_of_spark(rare, of_streams)
    return explain_rules(plan_rules(events, rules, keywords), rules, keywords.get("threads"))


def _refuse_of_spark(rare: object, of_streams: Mapping[str, bool]) -> None:
    """Raise UnsupportedError for keywords of Spark DataFrames; `of_streams` says which of those for streams are given."""
    faults = []
    if rare is not None:
        message = "rare= is for Spark DataFrames, whose events are shuffled; in this process rare events are found by themselves"
        faults.append(Diagnostic(message, hint="leave rare= out"))
    for name, is_given in of_streams.items():
        if is_given:
            message = f"{name}= is for a streaming DataFrame of Spark, and these events are a table"
            faults.append(Diagnostic(message, hint=f"leave {name}= out; in this process stream_all() takes it"))
    if faults:
        raise UnsupportedError(faults)
