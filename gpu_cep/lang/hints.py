"""Say what may have been meant by a syntax error: a misspelt word, or a construct of another language."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from gpu_cep.errors import nearest
from gpu_cep.lang.ast import AGGREGATES, GAPS, STRATEGIES
from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.lang.foreign_forms import FORMS, INTERVAL, operator_called
from gpu_cep.lang.foreign_operators import operator_at
from gpu_cep.lang.literals import UNIT_SPELLINGS

if TYPE_CHECKING:
    from lark import Token

CLAUSES = {
    "_FROM": "FROM",
    "_PARTITION": "PARTITION BY",
    "_DEFINE": "DEFINE",
    "_PATTERN": "PATTERN",
    "_WHERE": "WHERE",
    "_WITHIN": "WITHIN",
    "_RETURN": "RETURN",
}
# What stands before the brackets of a pattern.
_OPERATORS = ("SEQ", "AND", "OR", "NOT", "NEXT", *GAPS)
_OTHER_KEYWORDS = "SEQ AND OR NOT _AS _BY _AT _LEAST _MOST _BETWEEN _IN _IS _LIKE TRUE FALSE NULL _CASE _WHEN _THEN _ELSE _END"
KEYWORDS = {name: name.lstrip("_") for name in _OTHER_KEYWORDS.split()} | CLAUSES


@dataclass(frozen=True, slots=True)
class Mistake:
    """A token that cannot stand where it does.

    `text`: the query. `found`: the token. `expected`: the terminals that could stand there.
    `read`: the tokens before it. `opened`: the brackets that are still open.
    """

    text: str
    found: Token
    expected: frozenset[str]
    read: Sequence[Token]
    opened: Sequence[Token]

    def begins(self, form: re.Pattern[str]) -> bool:
        """Return whether `form` fits the text from the token on, or from the token before it."""
        return any(form.match(self.text, token.start_pos or 0) for token in (self.found, *self.read[-1:]) if token.type != "$END")


Hint = str | Callable[[Mistake], str | None]


def hint_at(mistake: Mistake) -> str | None:
    """Return what may have been meant, or None if nothing is known of such a mistake."""
    if mistake.found.type == "$END" and mistake.opened:
        return not_closed(mistake)
    return next(filter(None, (source(mistake) for source in _SOURCES)), None)


def keywords_in(terminals: Set[str]) -> list[str]:
    """Return the keywords among `terminals`; those of clauses come last, in the order of clauses."""
    return [name for terminal, name in KEYWORDS.items() if terminal in terminals]


def show_text(text: str) -> str:
    """Return a part of a query in quotes, cut if it is long."""
    return repr(str(text) if len(text) <= 40 else text[:37] + "...")


_IN_ORDER = "SEQ(A a, B b)"
_LENGTH = "a length is a number and a unit, above 0 and without quotes: WITHIN 5 minutes"
_KEYS = 'each key has its own brackets, [a] AND [b]; a name with a blank is quoted, ["a b"]'
_APART = "events one after the other are SEQ(A a, B b)"
NESTED = "nested fields are not read: make the field a column first, as table.flatten() and df.select('x.y') do"
LISTS = "but for corr(), lists in a column are not read: make what is compared a column first, such as an element or the length"
NO_CASTS = "there are no casts: cast the column before it is matched"
_SELECT = re.compile(r"\(\s*select\b", re.IGNORECASE)
_ANY_EVENT = "other events may lie in between; one of any type is a variable alone: SEQ(A a, x, B b)"
_PAIR = "a constraint relates two situations: A before B; for one kind alone see docs/intervals.md (One kind of situation)"


@dataclass(frozen=True, slots=True)
class _Place:
    """A token that is often misplaced, described by its type and by what is expected there.

    `found`: the types of the token. `hint`: what is meant there.
    `expected`: terminals that must all be expected. `unexpected`: one that must not.
    `before`: the types of the token before it; any if it is empty.
    """

    found: frozenset[str]
    hint: Hint
    expected: frozenset[str]
    unexpected: str
    before: frozenset[str]

    def fits(self, mistake: Mistake) -> bool:
        """Return whether the mistake is at such a place."""
        return (
            mistake.found.type in self.found
            and self.expected <= mistake.expected
            and self.unexpected not in mistake.expected
            and (not self.before or (bool(mistake.read) and mistake.read[-1].type in self.before))
        )


def _place(found: str, hint: Hint, expected: str = "", unexpected: str = "", before: str = "") -> _Place:
    return _Place(frozenset(found.split()), hint, frozenset(expected.split()), unexpected, frozenset(before.split()))


def _quoted_type(mistake: Mistake) -> str:
    name = mistake.found[1:-1]
    written = name if name.isidentifier() and name.upper() not in KEYWORDS.values() else f'"{name}"'
    return f"texts stand in conditions, an event type is a name: {written} a"


def _odd_name(mistake: Mistake) -> str:
    word = re.compile(r"[^\s(),]*").match(mistake.text, mistake.read[-1].start_pos or 0)
    return f'a name with other characters than letters, digits and _ is quoted: "{word and word[0]}"'


def _repeated_gap(mistake: Mistake) -> str | None:
    """Return how NEXT, FIRST or ANY before a quantifier is repeated, if it is what ends there."""
    depth = 0
    for place in range(len(mistake.read) - 1, 0, -1):
        depth += {"_RPAR": 1, "_LPAR": -1}.get(mistake.read[place].type, 0)
        if depth == 0:
            word = mistake.read[place - 1].upper()
            return f"a group is repeated: SEQ({word}(B b)){{0,3}}, or SEQ({word}(B b))?" if word in ("NEXT", *GAPS) else None
    return None


def _doubled_comparison(mistake: Mistake) -> str:
    """Return which comparison two signs are, in the other order or with a blank between them; most often it is equality."""
    meant = {"=<": "<=", "=>": ">=", "<=": "<=", ">=": ">=", "<>": "<>", "><": "<>"}.get(f"{mistake.read[-1]}{mistake.found}")
    return f"did you mean {meant!r}?" if meant else "equality is written ="


def _misspelt_operator(mistake: Mistake) -> str | None:
    """Return which operator with brackets the word before a bracket may be, in another language or misspelt."""
    if (elsewhere := operator_called(mistake.read[-1])) is not None:
        return elsewhere
    meant = nearest(mistake.read[-1], _OPERATORS)
    return meant and meant.replace("?", f" where {show_text(mistake.read[-1])} stands?")


def _strategy(mistake: Mistake) -> str | None:
    after = [token for before, token in pairwise(mistake.read) if before.type == "_WHERE"]
    return nearest(after[0], STRATEGIES) if after and after[0].type == "NAME" else None


def _keyword_as_name(mistake: Mistake) -> str:
    return f'{mistake.found} is a keyword: as a name it is quoted, "{mistake.found}"'


def _keyword_as_type(mistake: Mistake) -> str:
    keyword = mistake.read[-1]
    return f'{keyword} is a keyword: as a name it is quoted, "{keyword}"; a pattern has brackets, {keyword.upper()}(A a, B b)'


def _missing_pattern(mistake: Mistake) -> str:
    return _typo(mistake) or _earlier_typo(mistake) or f"a query begins with PATTERN: PATTERN {_IN_ORDER}"


def _missing_where(mistake: Mistake) -> str:
    return _typo(mistake) or "conditions stand behind WHERE: WHERE [key] AND a.x > 1"


def _negated_condition(mistake: Mistake) -> str | None:
    before = [token.type for token in mistake.read[-3:]]
    return "an event that must not occur stands in the pattern: SEQ(A a, NOT(B b), C c)" if before[:2] == ["NOT", "_LPAR"] else None


def not_closed(mistake: Mistake) -> str | None:
    """Return which bracket was opened last and is open still, or None if none is."""
    bracket = next(iter(mistake.opened[-1:]), None)
    return bracket and f"{show_text(bracket)} in line {bracket.line}, column {bracket.column} is not closed"


def _type_of_words(mistake: Mistake) -> str | None:
    """Return how a type of several words is written; of single letters, one is likelier a variable than part of a type."""
    words = _words_around(mistake)
    if len(words) > 1 and words[0].upper() in ("NEXT", *GAPS):
        return f"{words[0].upper()} has brackets: SEQ(A a, {words[0].upper()}({' '.join(words[1:])}))"
    if len(words) < 3 or any(len(word) == 1 for word in words[1:-1]) or any(word.upper() in KEYWORDS.values() for word in words):
        return None
    return f'an event type of several words is quoted: "{" ".join(words[:-1])}" {words[-1]}; {_APART}'


def _words_around(mistake: Mistake) -> list[str]:
    """Return the names that follow each other up to the token and behind it."""
    before = list(takewhile(lambda token: token.type == "NAME", reversed(mistake.read)))
    behind = re.compile(r"(?:\s*[^\W\d]\w*\b(?!\s*\())*").match(mistake.text, mistake.found.end_pos or 0)
    return [*reversed(before), str(mistake.found), *(behind[0].split() if behind else ())]


_COMPARED = re.compile(r"\s*(?:[=<>!]|(?:not\s+)?(?:in|like|between|is)\b)", re.IGNORECASE)


def _attribute_of_words(mistake: Mistake) -> str | None:
    """Return how an attribute of two words is written, if what follows compares it."""
    if not _COMPARED.match(mistake.text, mistake.found.end_pos or 0):
        return None
    owner = _owner(mistake.read[:-1])
    return f'a name with blanks is quoted: {owner}"{mistake.read[-1]} {mistake.found}"'


def _attribute_in_quotes(mistake: Mistake) -> str:
    return f'a name has double quotes: {_owner(mistake.read)}"{mistake.found[1:-1]}"'


def _owner(read: Sequence[Token]) -> str:
    """Return the variable and the dot with which `read` ends, nothing if it ends in no dot."""
    if not read or read[-1].type != "_DOT":
        return ""
    return f"{read[-2]}." if len(read) > 1 and read[-2].type == "NAME" else "v."


def _lone_situation(mistake: Mistake) -> str | None:
    return _PAIR if {"_DEFINE", "_PATTERN"} <= {token.type for token in mistake.read} else None


def _second_length(mistake: Mistake) -> str | None:
    return "a length has one unit: 90 minutes, not 1 hour 30 minutes" if mistake.read[-1].lower() in UNIT_SPELLINGS else None


def _called(mistake: Mistake) -> str | None:
    """Return what stands before the bracket that was opened last, in lower case; None if nothing does."""
    return next((name.lower() for name, bracket in pairwise(mistake.read) if mistake.opened and bracket is mistake.opened[-1]), None)


def _cast(mistake: Mistake) -> str | None:
    return NO_CASTS if _called(mistake) in ("cast", "try_cast", "safe_cast", "convert") else None


def _extract(mistake: Mistake) -> str | None:
    return f"a part of a time is a function of it: {mistake.read[-1].lower()}(v.attr)" if _called(mistake) == "extract" else None


def _backslash(mistake: Mistake) -> str | None:
    return "a quote in a text is doubled: 'it''s'" if mistake.read[-1].endswith("\\'") else None


def _dot_behind_attribute(mistake: Mistake) -> str:
    behind = re.compile(r"\.\s*(\w+)(\s*\()?").match(mistake.text, mistake.found.start_pos or 0)
    if behind and behind[1].lower() in AGGREGATES:
        return f"an aggregate stands before its brackets: {behind[1].lower()}(v.attr)"
    called = behind and (behind[2] or behind[1].lower() in ("year", "month", "day", "hour", "minute", "second"))
    return f"a function stands before its brackets: {behind[1].lower()}(v.attr)" if behind and called else NESTED


# The first that fits, and has a hint, is taken.
_PLACES = (
    _place("COMPARISON", _doubled_comparison, "TEXT", before="COMPARISON"),
    _place("COMPARISON", "each comparison has two sides: a.x > 1 AND a.x < 9", "TEXT", before="AND OR"),
    _place("COMPARISON", "comparisons do not chain: join them with AND", "MINUS", unexpected="INT"),
    _place(
        "QUESTION", "there are no reluctant quantifiers: skip_till_any_match finds the shorter matches, too",
        before="PLUS STAR QUESTION _RBRACE",
    ),
    _place("PLUS STAR _LBRACE QUESTION", _repeated_gap, before="_RPAR"),
    _place(
        "PLUS STAR _LBRACE",
        "behind a group stands ? or how often it is repeated, SEQ(A a, B b){1,3}; + and * stand behind one variable, SEQ(A a, B b+)",
        unexpected="COMPARISON", before="_RPAR",
    ),
    _place("_LBRACE", _strategy),
    _place("_LPAR", _misspelt_operator, "QUESTION", before="NAME"),
    _place("_LBRACKET", "several events are bound by a quantifier: Stock+ a[] or a+", "QUESTION", before="NAME QUOTED"),
    _place("_DOT", "an aggregate's attribute stands inside its brackets: last(v.attr)", before="_RPAR"),
    _place("PLUS", "an event is compared with the one before it: v[i] with v[i-1]", "_RBRACKET"),
    _place("_LPAR", "keys are columns without brackets: PARTITION BY k, n", before="_BY"),
    _place("_LPAR", "brackets do not group: events one after the other are SEQ(A, B+), in any order AND(A, B+)", "SEQ NAME"),
    _place("TEXT", _quoted_type, "SEQ NAME"),
    _place("MINUS SLASH _DOT", _odd_name, "QUESTION", before="NAME"),
    _place("AND", "events in any order are AND(A a, B b)", "QUESTION"),
    _place("OR", "one event or the other is OR(A a, B b)", "QUESTION"),
    _place("_AS", "a variable stands right behind its event type: A a", "PLUS QUESTION"),
    _place("SEMICOLON", "the elements of a pattern are separated by commas", "_COMMA _RPAR"),
    _place("_COMMA", "events one after the other are SEQ(A a, B b)", "_WHERE"),
    _place("NAME", _keyword_as_type, "_LPAR", unexpected="NAME", before="SEQ AND OR"),
    _place("_WITHIN _RETURN", "a condition is missing before it", "NAME", before="_WHERE AND OR"),
    _place("_FROM", _extract, "_COMMA"),
    _place("NAME", _backslash, "_WITHIN", before="TEXT"),
    _place(" ".join(CLAUSES), not_closed, "_RPAR", unexpected="NAME"),
    _place("TEXT NAME UNIT WORD MINUS _LBRACE", _LENGTH, "INT", before="_WITHIN"),
    _place("COMPARISON PLUS MINUS AND OR _RPAR _WITHIN _RETURN $END", INTERVAL, "UNIT", before="TEXT"),
    _place("_WITHIN _RETURN AND $END", _lone_situation, "NAME", unexpected="QUESTION", before="NAME"),
    _place("STAR", "write power(v.attr, 2)", "TEXT", before="STAR"),
    _place("_DOT", "a unit has no dot: WITHIN 5 min", "_RETURN", before="UNIT"),
    _place("_DOT", "a key is an attribute of all variables: [user], without a variable", "_RBRACKET", unexpected="MINUS"),
    _place("_COMMA NAME WORD", _KEYS, "_RBRACKET", unexpected="MINUS"),
    _place("_LBRACKET", _KEYS, "COMPARISON", before="_RBRACKET"),
    _place("_LBRACKET", "a list stands in round brackets: IN ('a', 'b')", before="_IN"),
    _place("NAME", f"IN is followed by values in round brackets: IN ('a', 'b'); {LISTS}", before="_IN"),
    _place("_RPAR", "IN takes one value or more: IN ('a', 'b')", "TEXT", before="_LPAR"),
    _place("_LBRACKET", f"the first event is v[1], its attribute v[1].attr; {LISTS}", "COMPARISON", before="WORD NAME"),
    _place("NAME _LBRACKET", _missing_where, "_WHERE", before="_RPAR"),
    _place("NAME", _attribute_of_words, "COMPARISON", before="WORD NAME"),
    _place("SEQ AND OR NOT NAME", _missing_pattern, "_PATTERN"),
    _place("STAR", "RETURN names what it returns: RETURN a.price AS price; whole events are output='events'", "TEXT", before="_RETURN"),
    _place("STAR", "RETURN v holds the events of v; all columns of the events are output='events'", "WORD", before="_DOT"),
    _place("STAR", "the events of one variable are counted: count(v)", "TEXT", before="_LPAR"),
    _place("STAR _DOT", _ANY_EVENT, "SEQ NAME"),
    _place(
        "_COMMA _RPAR _WHERE _WITHIN _RETURN $END", "a quantifier stands behind its variable: A a+, or A+ a[]",
        "_LBRACKET", unexpected="COMPARISON", before="NAME",
    ),
    _place("NAME", f"events one after the other are {_IN_ORDER}", "_WHERE", before="PLUS STAR QUESTION _RBRACE"),
    _place("MINUS", "the last event of a binding is v[v.LEN], the one before it v[i-1]", "INT", unexpected="TEXT", before="_LBRACKET"),
    _place("TEXT", "an attribute stands behind a dot: v.price", "INT", before="_LBRACKET"),
    _place("SLASH", "a text stands in single quotes: '/home'", "TEXT"),
    _place("_COMMA", "conditions are joined with AND; a number is written without commas: 1000.5", "_WITHIN", unexpected="_WHERE"),
    _place("NAME", _negated_condition, "COMPARISON", before="NAME"),
    _place("NAME", _type_of_words, "QUESTION", before="NAME"),
    _place("NAME", "a column of the result is named with AS: v.price AS price", "_AS", unexpected="QUESTION"),
    _place("_DOT", _dot_behind_attribute, "PLUS", before="WORD NAME QUOTED"),
    _place("TEXT", _attribute_in_quotes, "WORD", before="_DOT"),
    _place("TEXT", "a name has no quotes, or double ones: v.price AS price", "NAME", before="_AS"),
    _place("_AS", _cast, "_COMMA _RPAR"),
    _place("INT", _second_length, before="UNIT"),
    _place("INT", 'an event type that is no word is quoted: "404" a', "SEQ NAME"),
    _place(" ".join(KEYWORDS), _keyword_as_name, "NAME"),
)  # fmt: skip


def comparison_at(mistake: Mistake) -> str | None:
    """Return how a comparison that another language writes in its own way is written; None if there is none."""
    tokens = (*mistake.read[-1:], mistake.found)
    return operator_at(mistake.text, tuple(token.start_pos or 0 for token in tokens if token.type != "$END"), mistake.expected)


def _foreign(mistake: Mistake) -> str | None:
    possible = (each for each in FORMS if not each.expected or each.expected & mistake.expected)
    return next((each.hint for each in possible if mistake.begins(each.form)), None)


def _relation(mistake: Mistake) -> str | None:
    related = mistake.read and mistake.read[-1].lower() in RELATIONS
    return "situations are defined before they are related: DEFINE A AS …, B AS … PATTERN A before B" if related else None


def _subquery(mistake: Mistake) -> str | None:
    selects = mistake.opened and _SELECT.match(mistake.text, mistake.opened[-1].start_pos or 0)
    return "there are no subqueries: join the values that are asked for to the events first" if selects else None


def _at_place(mistake: Mistake) -> str | None:
    hints = (each.hint for each in _PLACES if each.fits(mistake))
    return next(filter(None, (hint(mistake) if callable(hint) else hint for hint in hints)), None)


def _typo(mistake: Mistake) -> str | None:
    return _nearest_keyword(mistake.found, mistake.expected)


def _earlier_typo(mistake: Mistake) -> str | None:
    typo = _nearest_keyword(mistake.read[-1], mistake.expected) if mistake.read else None
    return typo and typo.replace("?", f" where {show_text(mistake.read[-1])} stands?")


def _nearest_keyword(token: Token, expected: frozenset[str]) -> str | None:
    return nearest(token, keywords_in(expected)) if token.type in ("NAME", "UNIT", "WORD") and len(token) > 2 else None


def _one_after_the_other(mistake: Mistake) -> str | None:
    follows = mistake.found.type == "NAME" and "QUESTION" in mistake.expected
    return "events one after the other are SEQ(A a, B b)" if follows else None


_SOURCES: tuple[Callable[[Mistake], str | None], ...] = (
    _subquery,
    _foreign,
    comparison_at,
    _relation,
    _at_place,
    _typo,
    _earlier_typo,
    _one_after_the_other,
)
