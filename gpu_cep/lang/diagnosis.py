"""Explain syntax errors: what was found, what was expected, and what may have been meant."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpu_cep.errors import DiagnosedError, Diagnostic, PatternSyntaxError, nearest
from gpu_cep.lang.ast import RELATIONS, STRATEGIES, Span

if TYPE_CHECKING:
    from lark import Token

_CLAUSES = {
    "_FROM": "FROM",
    "_PARTITION": "PARTITION BY",
    "_DEFINE": "DEFINE",
    "_PATTERN": "PATTERN",
    "_WHERE": "WHERE",
    "_WITHIN": "WITHIN",
    "_RETURN": "RETURN",
}
_OTHER_KEYWORDS = "SEQ AND OR NOT _AS _BY _AT _LEAST _MOST _BETWEEN _IN _IS _LIKE TRUE FALSE NULL"
_KEYWORDS = {name: name.lstrip("_") for name in _OTHER_KEYWORDS.split()} | _CLAUSES

_SYMBOLS = {
    "_COMMA": "','",
    "_DOT": "'.'",
    "_DOTS": "'..'",
    "_LPAR": "'('",
    "_RPAR": "')'",
    "_LBRACKET": "'['",
    "_RBRACKET": "']'",
    "_LBRACE": "'{'",
    "_RBRACE": "'}'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "STRATEGY": "a strategy",
}

_SILENT = frozenset({"SEMICOLON"})


@dataclass(frozen=True, slots=True)
class _Group:
    """Terminals that messages call by one name.

    `name`: that name. `signature`: it is used where all of these are expected.
    `others`: terminals that it then stands for, too.
    """

    name: str
    signature: frozenset[str]
    others: frozenset[str] = frozenset()


def _group(name: str, signature: str, others: str = "") -> _Group:
    return _Group(name, frozenset(signature.split()), frozenset(others.split()))


_GROUPS = (
    _group("a pattern", "NAME SEQ AND", "OR NOT _TILDE QUOTED"),
    _group(
        "an expression",
        "NAME INT TEXT",
        "NOT QUOTED DECIMAL FLOAT PERCENT TRUE FALSE NULL MINUS _LPAR _LBRACKET _DATE _TIMESTAMP _INTERVAL",
    ),
    _group("a value", "INT TEXT"),
    _group("a quantifier", "QUESTION", "PLUS STAR _LBRACE"),
    _group("an operator", "PLUS MINUS", "STAR SLASH MODULO COMPARISON _BETWEEN _IN _LIKE _IS NOT"),
    _group("an index", "NAME INT _DOTS", "QUOTED"),
    _group("an index", "NAME INT", "QUOTED"),
    _group("a name", "NAME", "QUOTED"),
    _group("an attribute", "WORD", "QUOTED"),
    _group("a number", "INT", "DECIMAL FLOAT PERCENT _INTERVAL"),
    _group("a unit of time", "UNIT"),
    _group("a text in single quotes", "TEXT"),
)

_STRAY = {
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write <>",
    "−": "write -",
    "×": "write *",
    "“": 'names are quoted as "…"',
    "”": 'names are quoted as "…"',
    "‘": "texts are quoted as '…'",
    "’": "texts are quoted as '…'",
}

# Words of other query languages -> what to write instead, where a clause is expected.
_FOREIGN = {
    "select": "what a match returns stands at its end: PATTERN … WITHIN … RETURN a.price AS price",
    "match_recognize": "PATTERN (A B+) DEFINE B AS … is written PATTERN SEQ(A, B+) WHERE … here: see docs/mapping.md",
    "measures": "what a match returns stands at its end: RETURN a.price AS price",
    "every": "PATTERN SEQ(A a, B b) finds every match: see strategies and after_match",
}

_UNCLOSED = {"'": "a text that is not closed", '"': "a quoted name that is not closed", "`": "a quoted name that is not closed"}


def span_of(place: Any) -> Span:
    """Return the place of a token of lark's, or of a subtree, which is given by its `meta`."""
    return Span(place.line, place.column, place.end_line, place.end_column)


def unexpected_token(found: Token, expected: frozenset[str], read: Sequence[Token], opened: Sequence[Token]) -> DiagnosedError:
    """Return the error for a token that cannot stand where it does.

    `read` are the tokens before it, `opened` the brackets that are still open.
    """
    span = _end_of(read[-1]) if found.type == "$END" else span_of(found)
    misplaced = _misplaced_clause(found, expected, read)
    if misplaced is not None:
        return PatternSyntaxError([Diagnostic(misplaced, span)])
    what = "the query ends too early:" if found.type == "$END" else f"found {_show_text(found)},"
    message = f"{what} expected {_list_words(_words(expected))}"
    return PatternSyntaxError([Diagnostic(message, span, _hint(found, expected, read, opened))])


def unexpected_character(text: str, position: int, span: Span) -> PatternSyntaxError:
    """Return the error for text that is no token."""
    return PatternSyntaxError([Diagnostic(*_stray(text, position, span))])


def _stray(text: str, position: int, span: Span) -> tuple[str, Span, str | None]:
    character = text[position]
    if text.startswith("/*", position):
        return "found a comment that is not closed", span, "comments end with */"
    if text.startswith(('""', "``"), position):
        return "a name cannot be empty", span, None
    if character in _UNCLOSED:
        return f"found {_UNCLOSED[character]}", span, f"a {character} inside is written twice"
    return f"found {character!r}, which has no meaning here", span, _STRAY.get(character)


def _end_of(last: Token) -> Span:
    end = span_of(last)
    return Span(end.end_line, end.end_column, end.end_line, end.end_column + 1)


def _misplaced_clause(found: Token, expected: frozenset[str], read: Sequence[Token]) -> str | None:
    order = list(_CLAUSES)
    if found.type not in order or not expected & {"$END", "_PATTERN"}:
        return None
    seen = [token.type for token in read if token.type in order]
    name = _CLAUSES[found.type]
    if found.type in seen:
        return f"a second {name}: each clause stands once"
    later = [clause for clause in seen if order.index(clause) > order.index(found.type)]
    return f"{name} must stand before {_CLAUSES[later[0]]}" if later else None


def _words(expected: frozenset[str]) -> list[str]:
    left = set(expected - _SILENT)
    words = []
    for group in _GROUPS:
        if group.signature <= left:
            words.append(group.name)
            left -= group.signature | group.others
    symbols = [name for terminal, name in _SYMBOLS.items() if terminal in left]
    end = ["the end of the query"] if "$END" in left else []
    return words + symbols + _keywords(left) + end


def _keywords(terminals: Set[str]) -> list[str]:
    """Return the keywords among `terminals`; those of clauses come last, in the order of clauses."""
    return [name for terminal, name in _KEYWORDS.items() if terminal in terminals]


def _list_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _show_text(text: str) -> str:
    return repr(str(text) if len(text) <= 40 else text[:37] + "...")


def _hint(found: Token, expected: frozenset[str], read: Sequence[Token], opened: Sequence[Token]) -> str | None:
    if found.type == "$END" and opened:
        return f"{_show_text(opened[-1])} in line {opened[-1].line}, column {opened[-1].column} is not closed"
    if found.type == "COMPARISON" and "MINUS" in expected and "INT" not in expected:
        return "comparisons do not chain: join them with AND"
    if read and read[-1].lower() in RELATIONS:
        return "situations are defined before they are related: DEFINE A AS …, B AS … PATTERN A before B"
    if found.type == "_LBRACE":
        return _strategy_hint(read)
    if found.type == "_LBRACKET" and "QUESTION" in expected:
        return "several events are bound by a quantifier: Stock+ a[] or a+"
    if found.type == "_DOT" and read and read[-1].type == "_RPAR":
        return "an aggregate's attribute stands inside its brackets: last(v.attr)"
    if found.type == "PLUS" and "_RBRACKET" in expected:
        return "an event is compared with the one before it: v[i] with v[i-1]"
    if found.type == "_LPAR" and {"SEQ", "NAME"} <= expected:
        return "brackets do not group: events one after the other are SEQ(A, B+), in any order AND(A, B+)"
    if found.type in _KEYWORDS and "NAME" in expected:
        return f'{found} is a keyword: as a name it is quoted, "{found}"'
    return _foreign(found, expected, read) or _typo(found, expected) or (_earlier_typo(read[-1], expected) if read else None)


def _foreign(found: Token, expected: frozenset[str], read: Sequence[Token]) -> str | None:
    """Return what to write instead of a word of another language, where a clause is expected.

    The word may be the token before, if that was read as a name or a unit.
    """
    words = [token.lower() for token in (found, *read[-1:])] if expected & {"_PATTERN", "_RETURN"} else []
    return next((_FOREIGN[word] for word in words if word in _FOREIGN), None)


def _typo(token: Token, expected: frozenset[str]) -> str | None:
    return nearest(token, _keywords(expected)) if token.type in ("NAME", "UNIT", "WORD") and len(token) > 2 else None


def _earlier_typo(token: Token, expected: frozenset[str]) -> str | None:
    typo = _typo(token, expected)
    return typo and typo.replace("?", f" where {_show_text(token)} stands?")


def _strategy_hint(read: Sequence[Token]) -> str | None:
    after = [token for before, token in pairwise(read) if before.type == "_WHERE"]
    return nearest(after[0], STRATEGIES) if after and after[0].type == "NAME" else None
