"""Parse a query's text to its AST (docs/grammar.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from gpu_cep.errors import DiagnosedError, Diagnostic, PatternSyntaxError
from gpu_cep.lang.ast import Query, Span
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.diagnosis import span_of, unexpected_character, unexpected_token
from gpu_cep.lang.hints import Mistake
from gpu_cep.lang.limits import MAX_CHARACTERS, MAX_DEPTH, MAX_TOKENS
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.lang.row_patterns.diagnosis import unexpected_in_rows
from gpu_cep.lang.row_patterns.translation import translate_row_pattern
from gpu_cep.lang.translation import translate

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

# The number of queries whose trees are cached: a call parses its query several times, and calls are often repeated.
_REMEMBERED = 256
# The same of queries of more characters than _LONG, whose trees take up to tens of MiB each.
_REMEMBERED_LONG, _LONG = 2, 100_000

_MANY_TOKENS = "a list of constants alone counts once: a.x IN (1, 2, …)"
_OPENING = frozenset({"_LPAR", "_LBRACKET", "_LBRACE"})
_CLOSING = frozenset({"_RPAR", "_RBRACKET", "_RBRACE"})

# How the text of a row pattern begins, behind blanks and comments.
_ROW_PATTERN = re.compile(r"(?:\s++|--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+match_recognize\b", re.IGNORECASE)

AnyQuery = Query | IntervalQuery | RowPatternQuery


@dataclass(frozen=True, slots=True)
class _Reader:
    """What reads a language: its parser, what becomes of the tree, and how an unexpected token is explained."""

    parser: Callable[[], Lark]
    translate: Callable[[Tree[Token]], AnyQuery]
    unexpected: Callable[[Mistake], DiagnosedError]


def parse(text: str) -> AnyQuery:
    """Read a query over events, over situations, or a row pattern of SQL.

    Parameters
    ----------
    text
        ``[FROM …] [PARTITION BY …] PATTERN … [WHERE …] [WITHIN …] [RETURN …]``, or
        ``[FROM …] [PARTITION BY …] DEFINE … PATTERN … [WITHIN …] [RETURN …]``. Keywords are
        case-insensitive, identifiers are not. Or ``MATCH_RECOGNIZE (…)``, where identifiers
        without quotes are case-insensitive, too.

    Returns
    -------
    Query, IntervalQuery or RowPatternQuery
        The syntax tree; every node knows its place in the text.

    Raises
    ------
    PatternSyntaxError
        If the text is no query; the error shows the place and what was expected there.
    PatternError
        If PARTITION BY names a relation that FROM does not.
    UnsupportedError
        If MATCH_RECOGNIZE says SEEK or INITIAL.
    """
    if not isinstance(text, str):
        raise PatternSyntaxError(f"a query is text, not {type(text).__name__}")
    return _parse_query(text) if len(text) <= _LONG else _parse_long_query(text)


def _read_query(text: str) -> AnyQuery:
    _check_characters(text)
    reader = _ROW_PATTERNS if _ROW_PATTERN.match(text) else _EVENTS
    try:
        tree = _parse_tree(text, reader)
        _check_depth(tree)
        return reader.translate(tree)
    except DiagnosedError as error:
        raise type(error)(error.diagnostics, text) from None


_parse_query = lru_cache(maxsize=_REMEMBERED)(_read_query)
_parse_long_query = lru_cache(maxsize=_REMEMBERED_LONG)(_read_query)


def _check_characters(text: str) -> None:
    """Refuse too many characters, and half surrogate pairs, which no file can hold; the message does not quote the text."""
    if len(text) > MAX_CHARACTERS:
        raise PatternSyntaxError(f"a query of {len(text):,} characters is too long: {MAX_CHARACTERS:,} are the most")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line, column = text.count("\n", 0, error.start) + 1, error.start - text.rfind("\n", 0, error.start)
        message = f"U+{ord(text[error.start]):04X} is half of a surrogate pair and no character"
        raise PatternSyntaxError([Diagnostic(message, Span(line, column, line, column + 1))]) from None


@cache
def _event_parser() -> Lark:
    from gpu_cep.lang.grammar_tables import read_parser

    return read_parser()


@cache
def _row_pattern_parser() -> Lark:
    from gpu_cep.lang.grammar_tables import ROW_PATTERNS, read_parser

    return read_parser(language=ROW_PATTERNS)


_EVENTS = _Reader(_event_parser, translate, unexpected_token)
_ROW_PATTERNS = _Reader(_row_pattern_parser, translate_row_pattern, unexpected_in_rows)


def _parse_tree(text: str, reader: _Reader) -> Tree[Token]:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    parser: Any = reader.parser().parse_interactive(text)
    read: list[Token] = []
    opened: list[Token] = []
    try:
        for token in parser.iter_parse():
            _track(token, opened)
            read.append(token)
            if len(read) > MAX_TOKENS:
                raise PatternSyntaxError([Diagnostic(f"a query has at most {MAX_TOKENS:,} words and signs", span_of(token), _MANY_TOKENS)])
        if not read:
            raise PatternSyntaxError("the query is empty: it needs at least a PATTERN clause")
        tree: Tree[Token] = parser.feed_eof(read[-1])
    except UnexpectedToken as error:
        before = [token for token in read if token is not error.token]
        raise reader.unexpected(Mistake(text, error.token, frozenset(parser.accepts()), before, opened)) from None
    except UnexpectedCharacters as error:
        raise unexpected_character(text, error.pos_in_stream or 0, Span(error.line, error.column, error.line, error.column + 1)) from None
    return tree


def _track(token: Token, opened: list[Token]) -> None:
    if token.type in _CLOSING and opened:
        opened.pop()
    if token.type not in _OPENING:
        return
    opened.append(token)
    if len(opened) > MAX_DEPTH:
        raise _too_deep(span_of(token))


def _check_depth(tree: Tree[Token]) -> None:
    pending: list[tuple[Any, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise _too_deep(span_of(node.meta))
        pending += [(child, depth + 1) for child in node.children if hasattr(child, "children")]


def _too_deep(span: Span) -> PatternSyntaxError:
    message = f"brackets and operators nest more than {MAX_DEPTH} levels deep; each operator of a chain such as 1 + 2 + 3 is a level"
    return PatternSyntaxError([Diagnostic(message, span)])
