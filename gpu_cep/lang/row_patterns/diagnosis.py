"""Explain syntax errors in MATCH_RECOGNIZE: what was found, what was expected, and what may have been meant."""

from __future__ import annotations

import re
from itertools import chain

from gpu_cep.errors import DiagnosedError, Diagnostic, PatternSyntaxError, UnsupportedError, nearest
from gpu_cep.lang.diagnosis import end_of, list_words, span_of, words_for
from gpu_cep.lang.foreign_forms import INTERVAL
from gpu_cep.lang.hints import Mistake, comparison_at, not_closed, show_text

# The clauses by their first words, in the order in which they stand.
_CLAUSES = {
    "_PARTITION": "PARTITION BY",
    "_ORDER": "ORDER BY",
    "_MEASURES": "MEASURES",
    "_ONE": "ONE ROW PER MATCH",
    "_ALL": "ALL ROWS PER MATCH",
    "_AFTER": "AFTER MATCH SKIP",
    "_PATTERN": "PATTERN",
    "_WITHIN": "WITHIN",
    "_SUBSET": "SUBSET",
    "_DEFINE": "DEFINE",
}
_SIGNS = {"CARET": "'^'", "DOLLAR": "'$'", "_BAR": "'|'", "_EXCLUDE": "'{-'", "_INCLUDE": "'-}'"}
_OPERAND = frozenset({"NAME", "INT", "TEXT"})
# Terminals that no message names, since they stand beside what it names.
_SILENT = frozenset({"POSITION", "SEMANTICS", "SEMICOLON"})

# What functions of SQL with words between their arguments are called, and what to write instead.
_FUNCTIONS = {
    "cast": "there are no casts: cast the column in a relation before, or the measure in the statement around MATCH_RECOGNIZE",
    "extract": "write year(ts), month(ts), day(ts), hour(ts) and so on",
    "trim": "write trim(x), which leaves out blanks on both sides",
}
_FUNCTIONS["try_cast"] = _FUNCTIONS["cast"]

_SEQUENCE = "rows one after the other are written one after the other: PATTERN (A B+)"
# Text of other languages, or of later parts of SQL, and what to write instead.
_FORMS = (
    (r"rows\s+between\b", "frames are for row patterns in windows; in FROM every match is sought"),
    (r"(where|having)\b", "conditions on rows stand in DEFINE: DEFINE A AS x > 1"),
    (r"return\b", "what a match returns stands in MEASURES: MEASURES A.x AS x"),
    (r"(seq|every)\s*\(", _SEQUENCE),
    (r"->", _SEQUENCE),
    (r"filter\s*\(", "an aggregate passes over NULL: sum(CASE WHEN x > 2 THEN x END)"),
    (r"(ignore|respect)\s+nulls\b", "FIRST and LAST take the row, also one with NULL; min, max and other aggregates pass over NULL"),
    (r"over\s*\(", "aggregates cover rows of the match; functions over windows stand in a relation before or around MATCH_RECOGNIZE"),
    (r"\|\|", "texts are not joined here: join them in a relation before, or in the statement around MATCH_RECOGNIZE"),
    (r"distinct\s+from\b", "ask for NULL by itself: x <> y OR (x IS NULL) <> (y IS NULL)"),
    (r"limit\s+duration\b", "the longest time of a match stands behind PATTERN (…): WITHIN 1 MINUTE"),
    (r"at\s+time\s+zone\b", "convert the column in a relation before MATCH_RECOGNIZE"),
    (r"select\b", "here stands MATCH_RECOGNIZE (…) alone, without the statement around it"),
)
# The clause, the terminal before the mistake (any if it is empty) and that of the mistake -> what to write instead.
_PLACES = {
    ("_PATTERN", "", "_DOT"): "any row is a variable without a condition: PATTERN (A X* B)",
    ("_PATTERN", "_BAR", "_RPAR"): "an alternative without rows is written (): PATTERN (A | ())",
    ("_PARTITION", "", "_LPAR"): "keys are columns: compute them in a relation before MATCH_RECOGNIZE",
    ("_ORDER", "", "_LPAR"): "rows are ordered by columns: compute them in a relation before MATCH_RECOGNIZE",
}
# Columns in brackets.
_LISTED = re.compile(r"""\(\s*([\w\s,.`"]+?)\s*\)""")
# Matched from the word before the mistake: IS NOT is known, and a number may stand before a word.
_BIGQUERY = re.compile(r"options\s*\(", re.IGNORECASE)
_LENGTH = re.compile(r"interval\s*['\d]", re.IGNORECASE)
_NOT_DISTINCT = re.compile(r"not\s+distinct\s+from\b", re.IGNORECASE)

# A word that stands as the name of a column or variable would.
_AS_NAME = re.compile(r"\w+\s*([,.)+*/%<>=?{-]|(as|and|or|is|in|between|like|asc|desc|nulls)\b)", re.IGNORECASE)


def unexpected_in_rows(mistake: Mistake) -> DiagnosedError:
    """Return the error for a token that cannot stand where it does."""
    found = mistake.found
    span = end_of(mistake.read[-1]) if found.type == "$END" else span_of(found)
    refused = _subquery(mistake)
    if refused is not None:
        return refused
    misplaced = _misplaced_clause(mistake)
    if misplaced is not None:
        return PatternSyntaxError([Diagnostic(misplaced, span)])
    what = "the query ends too early:" if found.type == "$END" else f"found {show_text(found)},"
    return PatternSyntaxError([Diagnostic(f"{what} expected {list_words(_expected(mistake.expected))}", span, _hint(mistake))])


def _subquery(mistake: Mistake) -> UnsupportedError | None:
    """Return the error for a subquery, which the standard allows in MEASURES and DEFINE; None if there is none."""
    bracket = mistake.opened[-1].start_pos if mistake.opened else None
    first = next((token for token in mistake.read if bracket is not None and (token.start_pos or 0) > bracket), None)
    if first is None or first.lower() != "select":
        return None
    hint = "compute the value in the relation before MATCH_RECOGNIZE, as a column"
    return UnsupportedError([Diagnostic("a subquery in MEASURES or DEFINE is not supported", span_of(first), hint)])


def _misplaced_clause(mistake: Mistake) -> str | None:
    order, found = list(_CLAUSES), mistake.found.type
    if found not in order or not mistake.expected & {"_PATTERN", "_DEFINE", "$END"}:
        return None
    seen = [token.type for token in mistake.read if token.type in order]
    if found in seen:
        return f"a second {_CLAUSES[found]}: each clause stands once"
    later = [clause for clause in seen if order.index(clause) > order.index(found)]
    return f"{_CLAUSES[found]} must stand before {_CLAUSES[later[0]]}" if later else None


def _expected(terminals: frozenset[str]) -> list[str]:
    """Return the words for terminals: clauses in their order, groups by one name, each keyword as it is written."""
    left = set(terminals - _SILENT)
    if left >= _OPERAND:
        left -= {"STAR"}
    clauses = [name for terminal, name in _CLAUSES.items() if terminal in left]
    own = [name for terminal, name in (_SIGNS | _KEYWORDS).items() if terminal in left]
    known = words_for(frozenset(left - _CLAUSES.keys() - _SIGNS.keys() - _KEYWORDS.keys()))
    return [*known, *own, *clauses] or ["nothing more"]


_KEYWORDS = {
    "_MATCH_RECOGNIZE": "MATCH_RECOGNIZE",
    **{name: name.lstrip("_") for name in (
        "_ROW", "_ROWS", "_PER", "_MATCH", "_MATCHES", "_EMPTY", "_UNMATCHED", "SHOW", "OMIT", "WITH", "_SKIP", "PAST", "_TO", "NEXT",
        "FIRST", "LAST", "_PERMUTE",
    )},
    "DIRECTION": "ASC, DESC",
    "NULLS_ORDER": "NULLS FIRST, NULLS LAST",
}  # fmt: skip


def _function(mistake: Mistake) -> str:
    """Return the word before the innermost bracket that is open."""
    bracket = mistake.opened[-1].start_pos or 0
    before = [token for token in mistake.read if (token.start_pos or 0) < bracket]
    return before[-1].lower() if before else ""


def _clause(mistake: Mistake) -> str | None:
    """Return the clause in which a mistake is, by its first word."""
    return next((token.type for token in reversed(mistake.read) if token.type in _CLAUSES), None)


def _in_brackets(mistake: Mistake) -> str | None:
    """Return what stands in brackets in PARTITION BY or ORDER BY, without these; None if they hold more than columns."""
    clause, before = _clause(mistake), mistake.read[-1].type if mistake.read else ""
    if clause not in ("_PARTITION", "_ORDER") or before not in ("_BY", "_COMMA"):
        return None
    listed = _LISTED.match(mistake.text, mistake.found.start_pos or 0)
    return listed and f"{_CLAUSES[clause]} {listed[1]}"


def _hint(mistake: Mistake) -> str | None:
    if mistake.found.type == "$END" and mistake.opened:
        return not_closed(mistake)
    if mistake.begins(_NOT_DISTINCT):
        return "ask for NULL by itself: x = y OR x IS NULL AND y IS NULL"
    if mistake.begins(_BIGQUERY):
        return "the first match in order of preference is taken, as if use_longest_match were FALSE: write longer alternatives first"
    if mistake.begins(_LENGTH) or mistake.expected == {"UNIT"}:
        return INTERVAL
    if _clause(mistake) == "_PATTERN" and (mistake.found.type == "_COMMA" or mistake.read[-1].type == "_PATTERN"):
        return _SEQUENCE
    if (listed := _in_brackets(mistake)) is not None:
        return f"leave the brackets out: {listed}"
    place = _clause(mistake), mistake.read[-1].type if mistake.read else "", mistake.found.type
    for (clause, before, found), hint in _PLACES.items():
        if clause == place[0] and before in ("", place[1]) and found == place[2]:
            return hint
    start = mistake.found.start_pos or 0
    foreign = next((hint for form, hint in _FORMS if re.compile(form, re.IGNORECASE).match(mistake.text, start)), None)
    compared = foreign or comparison_at(mistake)
    if compared is not None:
        return compared
    if "NAME" in mistake.expected and _AS_NAME.match(mistake.text, start):
        return f'in quotes it is the name of a column or a variable: "{mistake.found}"'
    # no clause stands in brackets, but for those around all of them
    if mistake.found.type in _CLAUSES and "_RPAR" in mistake.expected and len(mistake.opened) > 1:
        return not_closed(mistake)
    if mistake.opened and _function(mistake) in _FUNCTIONS:
        return _FUNCTIONS[_function(mistake)]
    if "_AS" in mistake.expected and mistake.found.type in ("_COMMA", "_RPAR", *_CLAUSES):
        return "a measure is named with AS: MEASURES A.x AS x"
    if mistake.read and mistake.read[-1].lower() in ("final", "running"):
        return "FINAL and RUNNING stand before FIRST, LAST and aggregates: FINAL LAST(A.x)"
    words = chain.from_iterable(name.split() for name in _expected(mistake.expected) if name.isupper())
    return nearest(mistake.found, words) if mistake.found.type in ("NAME", "UNIT", "WORD") and len(mistake.found) > 2 else None
