"""Take SQL statements apart: find each MATCH_RECOGNIZE, the relation that it reads, and what that relation may name.

Everything is kept as it is written. sqlglot says where words and signs stand in a dialect of SQL; a
clause itself is read by our own parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gpu_cep.errors import DiagnosedError, Diagnostic, EngineUnavailable, PatternError, PatternSyntaxError, UnsupportedError
from gpu_cep.lang.ast import Span
from gpu_cep.lang.parser import parse

Part = tuple[int, int]
"""Where a part of a text begins and ends."""

# What begins a clause, if it is no part of a text, a name or a comment.
_OPENING = re.compile(r"\bMATCH_RECOGNIZE\b(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\(", re.IGNORECASE)
_WORD = len("MATCH_RECOGNIZE")
# What hides brackets in a clause: comments, texts and quoted names.
_HIDDEN = re.compile(r"--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|'[^']*'|\"[^\"]*\"|`[^`]*`|[()]")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
# What stands before a relation, and the first words of other clauses.
_BEFORE = frozenset({"FROM", "JOIN", ","})
_CLAUSES = frozenset({"FROM", "JOIN", "ON", "USING", "SELECT", "WHERE", "HAVING", "BY", "SET", "LIMIT", "QUALIFY"})
_OF_FROM = frozenset({"FROM", "JOIN", "ON", "USING"})
_FIRST = 8
_PLACE = "MATCH_RECOGNIZE stands behind a table, a view or a subquery in FROM"


@dataclass(frozen=True, slots=True)
class Clause:
    """A MATCH_RECOGNIZE of a statement.

    `rows`: where the relation stands that it reads. `end`: where the clause ends.
    `text`: the clause as it is written, behind as many blanks and lines as stand before it.
    `scopes`: where the lists of WITH stand that the relation may name, the outermost first.
    `name`: the relation, if it is a name alone that no WITH defines.
    `span`: where its first word stands.
    """

    rows: Part
    end: int
    text: str
    scopes: tuple[Part, ...]
    name: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of SQL and its clauses, in order.

    `listed`: where the queries of the WITH begin that it begins with, else 0.
    `words`: its first words and signs, in capital letters.
    """

    text: str
    clauses: tuple[Clause, ...]
    listed: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words and signs of a statement: in upper case, where they stand, and which brackets belong together."""

    texts: tuple[str, ...]
    places: tuple[Part, ...]
    partners: dict[int, int]


def take_apart(text: str, dialect: str) -> Statement:
    """Return a statement with its clauses.

    Parameters
    ----------
    text
        The statement.
    dialect
        sqlglot's name of the dialect in which all but the clauses are written.

    Raises
    ------
    EngineUnavailable
        sqlglot is not installed.
    PatternSyntaxError
        It is no text, or several statements, or a clause breaks the grammar, or stands where no relation does.
    UnsupportedError
        The relation of a clause depends on what stands around it, or the clause says SEEK or INITIAL.
    """
    if not isinstance(text, str):
        raise PatternSyntaxError(f"sql() takes a statement as text, not {type(text).__name__}")
    tokens = _tokenizer(dialect)
    found = tuple(_find_clauses(text, tokens))
    words = _words(_without(text, found), tokens)
    if ";" in words.texts[:-1]:
        raise PatternSyntaxError([Diagnostic("sql() takes one statement", _span(text, words.places[words.texts.index(";")]))], text)
    numbers = {begin: number for number, (begin, _) in enumerate(words.places)}
    clauses = tuple(_clause(text, dict(found), numbers[begin], words) for begin, _ in found)
    with places_in(text):
        for each in clauses:
            parse(each.text)
    listed = _queries(0, words) if words.texts[:1] == ("WITH",) else []
    return Statement(text, clauses, words.places[listed[0][0]][0] if listed else 0, words.texts[:_FIRST])


def input_of(statement: Statement, clause: Clause, names: Sequence[str], plain: Callable[[str], str] = str) -> str:
    """Return the query for the rows that a clause reads; for `names` and `plain` see :func:`written`."""
    rows = written(statement, clause.rows, names, plain)
    innermost, *outer = [written(statement, scope, names, plain) for scope in reversed(clause.scopes)] or [""]
    query = f"{innermost} SELECT * FROM {rows}".strip()
    for scope in outer:
        query = f"{scope} SELECT * FROM ({query})"
    return query


def written(statement: Statement, part: Part, names: Sequence[str], plain: Callable[[str], str] = str) -> str:
    """Return a part of a statement with names in place of the clauses in it and of the relations that these read.

    `names` are those of the first clauses; `plain` writes what is left as it is.
    """
    begin, end = part
    pieces = []
    outermost = _outermost([(each.rows[0], each.end, name) for each, name in zip(statement.clauses, names, strict=False)], part)
    for first, last, name in outermost:
        pieces += [plain(statement.text[begin:first]), name]
        begin = last
    return "".join([*pieces, plain(statement.text[begin:end])])


def with_queries(statement: Statement, queries: Sequence[str], names: Sequence[str], plain: Callable[[str], str]) -> str:
    """Return the whole statement, :func:`written`, with further queries (``t AS (…)``) listed before those of its own WITH."""
    begin = statement.listed
    rest = written(statement, (begin, len(statement.text)), names, plain)
    if not queries:
        return written(statement, (0, begin), names, plain) + rest
    listed = ", ".join(queries)
    return f"{plain(statement.text[:begin])}{listed}, {rest}" if begin else f"WITH {listed} {rest}"


@contextmanager
def places_in(text: str) -> Iterator[None]:
    """Raise errors that are raised inside about the text of a clause as errors about its statement, which shows their places."""
    try:
        yield
    except DiagnosedError as fault:
        raise type(fault)(fault.diagnostics, text) from None


def refuse_relation(statement: Statement, clause: Clause, why: str) -> PatternError:
    """Return the error for a relation that cannot be evaluated; `why` is what the database says of it."""
    message = f"the relation that MATCH_RECOGNIZE reads is evaluated by itself, which fails: {why}"
    hint = "it may name tables and queries of WITH, but no columns of what stands around it"
    return PatternError([Diagnostic(message, clause.span, hint)], statement.text)


def _outermost(clauses: Sequence[tuple[int, int, str]], part: Part) -> list[tuple[int, int, str]]:
    """Return the clauses in a part that no other clause in it holds, in order."""
    inside = [each for each in clauses if part[0] <= each[0] and each[1] <= part[1]]
    return sorted(each for each in inside if not any(o[0] <= each[0] and each[1] <= o[1] and o != each for o in inside))


def _tokenizer(dialect: str) -> Callable[[str], list[Any]]:
    """Return the function that finds the tokens of a text; it raises sqlglot's TokenError."""
    try:
        import sqlglot
    except ImportError as fault:
        raise EngineUnavailable("sql() needs sqlglot, which is not installed: pip install 'gpu_cep[sql]'") from fault
    return lambda text: sqlglot.tokenize(text, read=dialect)


def _find_clauses(text: str, tokens: Callable[[str], list[Any]]) -> Iterator[Part]:
    """Yield where each clause stands, from left to right."""
    found: list[Part] = []
    begin = 0
    while (opening := _OPENING.search(text, begin)) is not None:
        begin = opening.end()
        if _is_code(_without(text[:begin], found), opening.start(), tokens):
            begin = _end_of(text, opening)
            found.append((opening.start(), begin))
            yield found[-1]


def refuse_command(statement: Statement) -> None:
    """Raise UnsupportedError for a clause in a command of DuckDB, such as EXPLAIN, which sqlglot reads as a word and a text."""
    text = statement.text
    # '$A$' of a PATTERN begins a text in DuckDB's SQL
    outside = _without(text, [(each.end - len(each.text.lstrip()), each.end) for each in statement.clauses])
    for command in _tokenizer("duckdb")(outside)[:1]:
        if command.token_type.name == "COMMAND" and _OPENING.search(text, command.end):
            construct = f"MATCH_RECOGNIZE behind {command.text.upper()} is not supported"
            hint = "explain(t, 'MATCH_RECOGNIZE (…)') says how rows are matched"
            raise UnsupportedError([Diagnostic(construct, _span(text, (command.start, command.end + 1)), hint)], text)


def _is_code(text: str, begin: int, tokens: Callable[[str], list[Any]]) -> bool:
    """Return whether the last two tokens of a text are what begins a clause, rather than a part of a text or of a comment."""
    from sqlglot.errors import TokenError

    try:
        last = tokens(text)[-2:]
    except TokenError:
        return False
    return [(each.start, each.end + 1) for each in last] == [(begin, begin + _WORD), (len(text) - 1, len(text))]


def _end_of(text: str, opening: re.Match[str]) -> int:
    """Return where a clause ends, by the rules by which our own parser reads it."""
    depth = 1
    for each in _HIDDEN.finditer(text, opening.end()):
        depth += {"(": 1, ")": -1}.get(each[0], 0)
        if not depth:
            return each.end()
    bracket = Diagnostic("the bracket behind MATCH_RECOGNIZE is not closed", _span(text, (opening.end() - 1, opening.end())))
    raise PatternSyntaxError([bracket], text)


def _without(text: str, clauses: Sequence[Part]) -> str:
    """Return a text of the same length where of each clause only its first word is left."""
    for begin, end in clauses:
        text = text[: begin + _WORD] + re.sub(r"\S", " ", text[begin + _WORD : end]) + text[end:]
    return text


def _words(text: str, tokens: Callable[[str], list[Any]]) -> _Words:
    from sqlglot.errors import TokenError

    try:
        places = tuple((each.start, each.end + 1) for each in tokens(text))
    except TokenError as fault:
        raise PatternSyntaxError(f"the statement cannot be read: {fault}") from None
    texts = tuple(text[begin:end].upper() for begin, end in places)
    partners: dict[int, int] = {}
    opened: list[int] = []
    for number, each in enumerate(texts):
        if each in _BRACKETS.values():
            opened.append(number)
        elif each in _BRACKETS and opened and texts[opened[-1]] == _BRACKETS[each]:
            partners[opened[-1]] = number
            partners[number] = opened.pop()
    return _Words(texts, places, partners)


def _clause(text: str, ends: Mapping[int, int], number: int, words: _Words) -> Clause:
    """Return the clause whose first word has a number; `ends`: where each clause begins -> where it ends."""
    first = _first_of_relation(text, number, words)
    begin = words.places[number][0]
    span = _span(text, words.places[number])
    if words.texts[first] == "LATERAL":
        raise UnsupportedError([_dependent("LATERAL lets it read columns of the relations before it", span)], text)
    last, behind = words.places[number - 1]
    scopes: list[Part] = []
    names: set[str] = set()
    for opening, queries, inside in _scopes(first, words):
        own = None if inside is None else bare_name(words.texts[inside])
        if own is not None and own in map(bare_name, words.texts[first:number]) and words.texts[opening + 1] == "RECURSIVE":
            raise UnsupportedError([_dependent(f"it names the recursive query {own}, which is not complete", span)], text)
        names.update(bare_name(words.texts[query]) for query, _ in queries)
        if queries:
            scopes.append((words.places[opening][0], words.places[queries[-1][1]][1]))
    alone = number - first == 1 and bare_name(words.texts[first]) not in names
    name = text[slice(*words.places[first])] if alone else None
    blank = re.sub(r"\S", " ", text[:begin])
    rows = (words.places[first][0], ends.get(last, behind))
    return Clause(rows, ends[begin], blank + text[begin : ends[begin]], tuple(scopes), name, span)


def bare_name(name: str) -> str:
    """Return a name without its quotes, of which two within it stand for one."""
    mark = name[:1]
    return name[1:-1].replace(2 * mark, mark) if mark in ('"', "`") and len(name) > 1 and name.endswith(mark) else name


def _dependent(why: str, span: Span) -> Diagnostic:
    return Diagnostic(f"the relation that MATCH_RECOGNIZE reads is evaluated before all around it, and {why}", span)


def _first_of_relation(text: str, number: int, words: _Words) -> int:
    """Return the number of the first word of the relation before a clause; PatternSyntaxError if there is none."""
    stop = _before(number, _CLAUSES | {","}, words)
    before = words.texts[stop] if stop >= 0 else ""
    if before == ",":
        # the items of SELECT have commas between them, too
        clause = _before(stop, _CLAUSES, words)
        stands = clause >= 0 and words.texts[clause] in _OF_FROM
    elif before == "(":
        stands = stop > 0 and words.texts[stop - 1] in {*_BEFORE, "("}
    else:
        stands = before in _BEFORE
    if number - stop == 1 or not stands:
        raise PatternSyntaxError([Diagnostic(_PLACE, _span(text, words.places[number]), "FROM t MATCH_RECOGNIZE (…) AS m")], text)
    return stop + 1


def _before(number: int, wanted: frozenset[str], words: _Words) -> int:
    """Return the nearest word before another that is wanted or opens the brackets around both; -1 if there is none."""
    place = number - 1
    while place >= 0 and words.texts[place] not in wanted and words.texts[place] != "(":
        place = words.partners.get(place, place) - 1
    return place


def _scopes(place: int, words: _Words) -> list[tuple[int, list[tuple[int, int]], int | None]]:
    """Return the lists of WITH around a word, the outermost first.

    Each is the number of its WITH, the names and ends of the queries that end before the word, and the
    name of the query in which the word stands.
    """
    around: list[int | None] = [None]
    for number, text in enumerate(words.texts[:place]):
        if text == "(":
            around.append(None)
        elif text == ")" and len(around) > 1:
            around.pop()
        elif text == "WITH" and _queries(number, words):
            around[-1] = number
    found = []
    for begin in around:
        if begin is not None:
            queries = _queries(begin, words)
            inside = next((name for name, end in queries if name < place < end), None)
            found.append((begin, [each for each in queries if each[1] < place], inside))
    return found


def _queries(number: int, words: _Words) -> list[tuple[int, int]]:
    """Return the number of the name and of the last bracket of each query that a WITH lists; none if it is another WITH."""
    texts, found = words.texts, []
    place = number + 1 + (texts[number + 1 : number + 2] == ("RECURSIVE",))
    while place < len(texts):
        name = place
        columns = texts[place + 1 : place + 2] == ("(",)
        place = (words.partners.get(place + 1, place) if columns else place) + 1
        if texts[place : place + 1] != ("AS",):
            break
        place += 1
        while texts[place : place + 1] in (("NOT",), ("MATERIALIZED",)):
            place += 1
        if texts[place : place + 1] != ("(",) or place not in words.partners:
            break
        found.append((name, words.partners[place]))
        place = words.partners[place] + 1
        if texts[place : place + 1] != (",",):
            break
        place += 1
    return found


def _span(text: str, part: Part) -> Span:
    """Return the place of a part of a text in lines and columns, for errors."""
    (line, column), (end_line, end_column) = ((text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)) for place in part)
    return Span(line, column, end_line, end_column)
