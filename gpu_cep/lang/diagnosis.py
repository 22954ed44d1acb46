"""Explain syntax errors: what was found, what was expected, and what may have been meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu_cep.errors import DiagnosedError, Diagnostic, PatternSyntaxError
from gpu_cep.lang.ast import Span
from gpu_cep.lang.foreign_operators import operator_at
from gpu_cep.lang.hints import CLAUSES, NO_CASTS, Mistake, hint_at, keywords_in, show_text

if TYPE_CHECKING:
    from lark import Token

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


_NAMES = "QUOTED _WHEN _THEN _ELSE _END"

_GROUPS = (
    _group("a pattern", "NAME SEQ AND", f"OR NOT _TILDE {_NAMES}"),
    _group(
        "an expression",
        "NAME INT TEXT",
        f"NOT DECIMAL FLOAT PERCENT TRUE FALSE NULL MINUS _LPAR _LBRACKET _DATE _TIMESTAMP _INTERVAL _CASE DISTINCT {_NAMES}",
    ),
    _group("a value", "INT TEXT"),
    _group("a quantifier", "QUESTION", "PLUS STAR _LBRACE"),
    _group("an operator", "PLUS MINUS", "STAR SLASH MODULO COMPARISON _BETWEEN _IN _LIKE _IS NOT"),
    _group("an index", "NAME INT _DOTS", _NAMES),
    _group("an index", "NAME INT", _NAMES),
    _group("a name", "NAME", _NAMES),
    _group("an attribute", "WORD", "QUOTED"),
    _group("a number", "INT", "DECIMAL FLOAT PERCENT _INTERVAL"),
    _group("a unit of time", "UNIT"),
    _group("a text in single quotes", "TEXT"),
)

_STRAY = {
    "&": "write AND",
    "|": "write OR between conditions, OR(A a, B b) between events",
    "!": "write NOT",
    ":": 'a variable stands behind its event type: A a; a name with such characters is quoted: "page:view"',
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write <>",
    "−": "write -",
    "×": "write *",
    "^": "write power(v.attr, 2)",
    **dict.fromkeys("“”‘’„", "a text is written '…', a quoted name \"…\", with straight quotes"),
    "#": "a comment is written -- … or /* … */",
    "$": 'a value is written without $; a name with it is quoted: "$type"',
}

_UNCLOSED = {"'": "a text that is not closed", '"': "a quoted name that is not closed", "`": "a quoted name that is not closed"}


def span_of(place: Any) -> Span:
    """Return the place of a token of lark's, or of a subtree, which is given by its `meta`."""
    return Span(place.line, place.column, place.end_line, place.end_column)


def unexpected_token(mistake: Mistake) -> DiagnosedError:
    """Return the error for a token that cannot stand where it does."""
    found, expected = mistake.found, mistake.expected
    span = end_of(mistake.read[-1]) if found.type == "$END" else span_of(found)
    misplaced = _misplaced_clause(found, expected, mistake.read)
    if misplaced is not None:
        return PatternSyntaxError([Diagnostic(misplaced, span)])
    what = "the query ends too early:" if found.type == "$END" else f"found {show_text(found)},"
    message = f"{what} expected {list_words(words_for(expected))}"
    return PatternSyntaxError([Diagnostic(message, span, hint_at(mistake))])


def unexpected_character(text: str, position: int, span: Span) -> PatternSyntaxError:
    """Return the error for text that is no token."""
    return PatternSyntaxError([Diagnostic(*_stray(text, position, span))])


def _stray(text: str, position: int, span: Span) -> tuple[str, Span, str | None]:
    character = text[position]
    if text.startswith("/*", position):
        return "found a comment that is not closed", span, "comments end with */"
    if text.startswith(('""', "``"), position):
        return "a name cannot be empty", span, None
    if text.startswith("::", position):
        return "found '::', which has no meaning here", span, NO_CASTS
    if character == ":" and text[max(position - 1, 0)].isdigit():
        return "found ':', which has no meaning here", span, "a length of time is a number and a unit: WITHIN 90 minutes"
    if character in _UNCLOSED:
        return f"found {_UNCLOSED[character]}", span, f"a {character} inside is written twice"
    hint = operator_at(text, (position,)) or _STRAY.get(character)
    return f"found {character!r}, which has no meaning here", span, hint


def end_of(last: Token) -> Span:
    """Return the place right behind a token."""
    end = span_of(last)
    return Span(end.end_line, end.end_column, end.end_line, end.end_column + 1)


def _misplaced_clause(found: Token, expected: frozenset[str], read: Sequence[Token]) -> str | None:
    order = list(CLAUSES)
    if found.type not in order or not expected & {"$END", "_PATTERN"}:
        return None
    seen = [token.type for token in read if token.type in order]
    name = CLAUSES[found.type]
    if found.type in seen:
        return f"a second {name}: each clause stands once"
    later = [clause for clause in seen if order.index(clause) > order.index(found.type)]
    return f"{name} must stand before {CLAUSES[later[0]]}" if later else None


def words_for(expected: frozenset[str]) -> list[str]:
    """Return the words by which messages call terminals."""
    left = set(expected - _SILENT)
    words = []
    for group in _GROUPS:
        if group.signature <= left:
            words.append(group.name)
            left -= group.signature | group.others
    symbols = [name for terminal, name in _SYMBOLS.items() if terminal in left]
    end = ["the end of the query"] if "$END" in left else []
    return words + symbols + keywords_in(left) + end


def list_words(words: Sequence[str]) -> str:
    """Return words as an enumeration that ends in "or"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
