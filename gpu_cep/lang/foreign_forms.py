"""Hold forms of other languages in the text of a query, and what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """Text of another language, and what to write instead.

    `expected`: terminals of which one must be expected; none are asked for if it is empty.
    """

    form: re.Pattern[str]
    hint: str
    expected: frozenset[str]


def form(written: str, hint: str, expected: str = "_PATTERN _RETURN $END") -> Form:
    """Return the form of text that the regular expression `written` fits, in whatever case."""
    return Form(re.compile(written, re.IGNORECASE | re.DOTALL), hint, frozenset(expected.split()))


INTERVAL = "a length of time is 5 minutes, or INTERVAL '5' MINUTE"
_ROW_PATTERN = "MATCH_RECOGNIZE (…) is given alone to match(), and in a statement of SQL to sql(): see docs/row-patterns.md"
_IN_ORDER = "SEQ(A a, B b)"
_RETURNED = "RETURN a.price AS price"
_AT_END = f"what a match returns stands at its end: {_RETURNED}"
_PER_STEP = "WITHIN holds for the whole match; the time between two events is a condition: WHERE b.ts - a.ts <= 5 minutes"

FORMS = (
    form(r"[\w\s=\"]*->", "A -> B is written PATTERN SEQ(A a, B b); every match is found: see strategies and after_match", ""),
    form(r"select\b.*\bmatch_recognize\b", _ROW_PATTERN),
    form(r"select\b", f"what a match returns stands at its end: PATTERN … WITHIN … {_RETURNED}"),
    form(r"match_recognize\b", _ROW_PATTERN),
    form(r"match\s*\(", "PATTERN P AS (A B* C) of Vertica's MATCH is MATCH_RECOGNIZE (… PATTERN (A B* C) DEFINE …)"),
    form(r"measures\b", _AT_END),
    form(r"every\b", "PATTERN SEQ(A a, B b) finds every match: see strategies and after_match"),
    form(r"sequence\b", "sequence by k [A where …] [B] is written PARTITION BY k PATTERN SEQ(A a, B b) WHERE …"),
    form(r"after\s+match\b", "AFTER MATCH SKIP is the keyword after_match= of the call: all, skip_past_last, skip_to_next"),
    form(r"(followed|then)\b", "events one after the other are SEQ(A a, B b)"),
    form(r"having\b", "conditions on aggregates stand in WHERE: WHERE count(b) > 2"),
    form(r"group\b", "PARTITION BY k, before PATTERN, makes a stream of the events of each k"),
    form(r"order\b", "results are ordered by stream, first event and last event; order_by= of the call orders events of equal time"),
    form(r"limit\s+duration\b", "the longest time of a match is written WITHIN 5 minutes"),
    form(r"limit\b", "there is no LIMIT: limit_per_start= keeps some matches of each start, and max_matches= makes too many an error"),
    form(r"strategy\b", "the strategy is the keyword strategy= of the call, or stands in the text: WHERE skip_till_any_match { … }"),
    form(r"until\b", "UNTIL stands behind a quantifier, its condition in parentheses: B b+ UNTIL (type = 'X')", ""),
    form(r"(in|during|for)\s+\d", "write WITHIN: WITHIN 5 minutes", "_WITHIN"),
    form(r"within\s+(interval\s+)?('[^']*'|[\d.]+)\s*\w*\s*[,)]", _PER_STEP, "_RPAR"),
    form(r"interval\s+['\d]", INTERVAL, ""),
    form(r"//", "a comment is written -- … or /* … */"),
    form(r"[\w./\\:-]+\.(cep|txt|sql)\s*$", "this is a file's name: give its text, such as Path(name).read_text()", "_PATTERN"),
    form(
        r"over\s*\(",
        "functions over windows are columns of the events before they are matched; prev(v.attr) is of the event bound before",
        "",
    ),
    form(r"emit\b", "matches of a stream are given once they are certain: see docs/streams.md"),
    form(
        r"(window\s+)?(tumbling|hopping|session)\s*\(",
        "a match begins at its first event, and WITHIN bounds it: there are no other windows",
        "",
    ),
    form(r"join\b", f"events are related by one pattern: {_IN_ORDER}, or AND(A a, B b) in any order"),
    form(r"on\b", "conditions stand in WHERE, before WITHIN"),
    form(r"subset\b", "an aggregate reads one variable; OR(A a, B b) is one event or the other"),
    form(r"qualify\b", "conditions on aggregates stand in WHERE, too: WHERE count(b) > 2"),
    form(r"(is\s+)?not\s+distinct\s+from\b|<=>", "ask for NULL by itself: a.x = b.x OR a.x IS NULL AND b.x IS NULL", ""),
    form(r"(is\s+)?distinct\s+from\b", "ask for NULL by itself: a.x <> b.x OR (a.x IS NULL) <> (b.x IS NULL)", ""),
    form(r"not\s+true\b", "ask for NULL by itself: NOT a.x OR a.x IS NULL", "NULL"),
    form(r"not\s+false\b", "ask for NULL by itself: a.x OR a.x IS NULL", "NULL"),
    form(r"distinct\b", "count(DISTINCT b.x) counts values that differ, and RETURN b.x gives all values as a list", ""),
)

# What stands before the brackets of a pattern in another language -> the same here.
_CALLED = {
    r"kc|kleene\w*|plus|star|(one|zero)ormore": "what is repeated has a quantifier behind it: B b+, SEQ(A a, B b){1,5}",
    r"opt|optional": "what may be left out has a question mark behind it: B b?, SEQ(A a, B b)?",
    r"neg|negation\w*|without|absent": "an event that must not occur is NOT(B b)",
    r"seq_?operator|sequence|then|followed_?by": f"events one after the other are {_IN_ORDER}",
    r"and_?operator|all|all_?of|conjunction|permute": "events in any order are AND(A a, B b)",
    r"or_?operator|any_?of|disjunction|either|choice": "one event or the other is OR(A a, B b)",
}


def operator_called(word: str) -> str | None:
    """Return what to write for an operator of another language that has brackets; None for other words."""
    return next((hint for called, hint in _CALLED.items() if re.fullmatch(called, word, re.IGNORECASE)), None)
