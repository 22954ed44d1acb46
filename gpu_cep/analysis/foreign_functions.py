"""Say what is written here in place of a function of another language."""

from __future__ import annotations

from gpu_cep.analysis.hints import CLOCKS, NOW
from gpu_cep.lang.ast import Call, Literal
from gpu_cep.lang.format import format_expression, format_operand
from gpu_cep.lang.literals import escape_wildcards, write_text

_OF_VALUES = "return the values of each match, and compute it from them"
_COLUMN = "compute it as a column of the events before they are matched"
_LENGTH = "the difference of two times is a length of time: b.ts - a.ts > 5 minutes"
_SITUATIONS = "start(), end() and duration() are of situations; of events write last(v.ts) - first(v.ts)"
_EACH = "a condition holds for every event of a quantified variable, v.attr > 1; for one of them write max(v.attr) > 1"
_LISTS = frozenset({"collect_list", "collect_set", "array_agg", "list_agg", "listagg", "list", "string_agg", "group_concat"})
# Functions that take the name of a unit.
_OF_UNITS = frozenset({"isfirst", "datediff", "date_diff", "timestampdiff", "timestamp_diff", "timestampadd", "date_trunc"})
# A function of other languages -> what to write here; {0} is its first argument, {last} its last, {all} are all of them,
# {operands[0]} is the first one as an operand,
# {pattern} is the text that is its second one, and {like} what it holds as a part of a pattern of LIKE.
_ELSEWHERE = {
    **dict.fromkeys(("if", "iif"), "write CASE WHEN {0} THEN {1} ELSE {2} END"),
    "decode": "write CASE WHEN c THEN x ELSE y END",
    **dict.fromkeys(("ifnull", "nvl"), "write coalesce({all})"),
    "isnull": "write {operands[0]} IS NULL, or coalesce({0}, {1})",
    "mean": "write avg({0})",
    **dict.fromkeys(("std", "stddev", "stddev_samp", "stddev_pop", "variance", "percentile", "quantile"), _OF_VALUES),
    **dict.fromkeys(CLOCKS, NOW),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff", "timestamp_diff", "unix_timestamp", "epoch", "age"), _LENGTH),
    **dict.fromkeys(("dateadd", "date_add", "timestampadd", "timestamp_add"), "a time and a length of time are added: a.ts + 5 minutes"),
    **dict.fromkeys(("date", "to_date", "to_timestamp", "date_trunc", "date_format", "strftime", "strptime"), _COLUMN),
    **dict.fromkeys(("concat", "replace", "split", "split_part", "regexp_extract", "get_json_object", "json_extract"), _COLUMN),
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile"), _COLUMN),
    **dict.fromkeys(("contains", "instr"), "write {operands[0]} LIKE '%{like}%'"),
    **dict.fromkeys(("startswith", "starts_with"), "write {operands[0]} LIKE '{like}%'"),
    **dict.fromkeys(("endswith", "ends_with"), "write {operands[0]} LIKE '%{like}'"),
    **dict.fromkeys(("regexp", "rlike", "regexp_matches", "regexp_instr"), "write regexp_like({0}, {pattern})"),
    **dict.fromkeys(("len", "size", "char_length", "cardinality"), "length({0}) counts the characters of a text, count(v) events"),
    **dict.fromkeys(("weekday", "dow", "day_of_week"), "write dayofweek({0}): 1 for Sunday to 7 for Saturday"),
    **dict.fromkeys(("any", "some", "all", "every", "exists", "bool_or", "bool_and", "logical_or", "logical_and"), _EACH),
    **dict.fromkeys(("count_if", "countif"), "a condition on v stands in WHERE, and count(v) counts the events of v"),
    **dict.fromkeys(("max_by", "min_by", "arg_max", "arg_min"), _OF_VALUES),
    **dict.fromkeys(("any_value", "arbitrary"), "write first({0})"),
    **dict.fromkeys(("start", "end", "duration"), _SITUATIONS),
    "isfirst": "compute the interval of each event as a column, slot, and write SEQ(NOT(x), y) WHERE x.slot = y.slot, WITHIN its length",
    "safe_divide": "what is divided by 0 is NULL: write {operands[0]} / {operands[1]}",
    **dict.fromkeys(
        ("classifier", "match_number", "event_name", "pattern_id", "match_id"),
        "output='events' has the variable of each event, and match_id",
    ),
    "log": "write ln({last}), log2({last}) or log10({last})",
    "next": "an event behind it has a variable of its own: SEQ(a, b), and b.attr",
    "lag": "write prev({0}), the value of the event bound just before",
    "lead": "there is no LEAD: compare an event with the one before it, prev({0}) with {0}",
}
_ROWS = "ALL ROWS PER MATCH gives the rows of each match, from which the statement around computes it"
# The same in row patterns, where aggregates take expressions.
_IN_ROWS = _ELSEWHERE | {
    **dict.fromkeys(("any", "some", "bool_or", "logical_or"), "write max(CASE WHEN {0} THEN 1 ELSE 0 END) = 1"),
    **dict.fromkeys(("all", "every", "bool_and", "logical_and"), "write min(CASE WHEN {0} THEN 1 ELSE 0 END) = 1"),
    **dict.fromkeys(("count_if", "countif"), "write count(CASE WHEN {0} THEN 1 END)"),
    **dict.fromkeys(("max_by", "min_by", "arg_max", "arg_min"), _ROWS),
    **dict.fromkeys(("any_value", "arbitrary", "rpr_first"), "write FIRST({0})"),
    "isfirst": "compute the interval of each row as a column, slot; the first row is DEFINE A AS PREV(slot) IS NULL OR PREV(slot) <> slot",
    "rpr_last": "write LAST({0})",
    **dict.fromkeys(("match_row_number", "match_id"), "write count(*), the number of the rows of the match up to this one"),
    "event_name": "write CLASSIFIER(), the variable of the row",
    "pattern_id": "write MATCH_NUMBER(), the number of the match",
}
_EXAMPLES = ("v.attr", "x", "y")
"""What stands in a hint for arguments that a call leaves out."""


def written_here(name: str, call: Call, *, of_rows: bool = False) -> str | None:
    """Return what to write in place of the call of function `name`, with its arguments; None if the function is not known.

    `of_rows`: whether the call stands in a row pattern.
    """
    instead = (_IN_ROWS if of_rows else _ELSEWHERE).get(name)
    if instead is None:
        return None
    given = [format_expression(argument) for argument in call.arguments]
    arguments = [*given, *_EXAMPLES[len(given) :]]
    operands = [*map(format_operand, call.arguments), *_EXAMPLES[len(given) :]]
    match call.arguments:
        case (_, Literal(value=str(text)), *_):
            pattern, like = write_text(text), escape_wildcards(text)
        case _:
            pattern, like = "'pattern'", "text"
    everything, last = ", ".join(given if len(given) > 1 else arguments[:2]), arguments[max(0, len(given) - 1)]
    like = like.replace("'", "''")
    return instead.format(*arguments, operands=operands, last=last, all=everything, pattern=pattern, like=like)


def written_whole(call: Call, *, of_rows: bool = False) -> str | None:
    """Return what to write for a function that takes a unit or makes a list; None for others.

    `of_rows`: whether the call stands in a row pattern.
    """
    if call.function in _OF_UNITS:
        return written_here(call.function, call, of_rows=of_rows)
    if call.function not in _LISTS:
        return None
    if of_rows:
        return _ROWS
    argument = format_expression(call.arguments[0]) if call.arguments else _EXAMPLES[0]
    return f"RETURN {argument} is the list of its values, if the variable has a quantifier"
