"""Define the abstract syntax of MATCH_RECOGNIZE, as frozen dataclasses beside those of :mod:`gpu_cep.lang.ast`.

Constants, operators and scalar functions are the same nodes as in event patterns; so are variables,
sequences, alternatives and quantifiers. Names are identifiers as they are written, a quoted one with
its double quotes: :mod:`gpu_cep.lang.row_patterns.names` says which identifiers are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_cep.lang.ast import Expression, Node, PatternNode, Window

Semantics = Literal["RUNNING", "FINAL"]

NAVIGATIONS = ("PREV", "NEXT", "FIRST", "LAST")
PHYSICAL = ("PREV", "NEXT")
SYNONYMS = {"LAG": "PREV", "LEAD": "NEXT"}
"""What Snowflake calls them."""


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column, ``x``, or that of a variable, ``A.x``; without a variable it is of any row of the match."""

    variable: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Navigation(Expression):
    """The value of `argument` at another row, such as ``PREV(A.x, 2)``.

    `function`: one of :data:`NAVIGATIONS`.
    `offset`: None where none is written: 1 for PREV and NEXT, 0 for FIRST and LAST.
    `semantics`: None where none is written, which stands for RUNNING.
    """

    function: str
    argument: Expression
    offset: int | None = None
    semantics: Semantics | None = None


@dataclass(frozen=True, slots=True)
class RowAggregate(Expression):
    """An aggregate over rows of the match, such as ``sum(A.x)``.

    `function`: one of :data:`AGGREGATES`. ``count_distinct`` is written ``count(DISTINCT A.x)``.
    `argument`: None for ``count(*)`` and ``count(A.*)``.
    `variable`: the variable of ``count(A.*)``, else None.
    """

    function: str
    argument: Expression | None
    variable: str | None = None
    semantics: Semantics | None = None


@dataclass(frozen=True, slots=True)
class Classifier(Expression):
    """``CLASSIFIER()``, or ``CLASSIFIER(U)``: the variable to which a row is mapped, as PATTERN spells it."""

    variable: str | None = None


@dataclass(frozen=True, slots=True)
class MatchNumber(Expression):
    """``MATCH_NUMBER()``: the number of the match in its partition, from 1."""


@dataclass(frozen=True, slots=True)
class Empty(PatternNode):
    """``()``: no row."""


@dataclass(frozen=True, slots=True)
class Anchor(PatternNode):
    """``^`` or ``$``: the start or the end of the partition."""

    sign: Literal["^", "$"]


@dataclass(frozen=True, slots=True)
class Exclusion(PatternNode):
    """``{- … -}``: rows that belong to the match, but are left out of ALL ROWS PER MATCH."""

    element: PatternNode


@dataclass(frozen=True, slots=True)
class Permute(PatternNode):
    """``PERMUTE(…)``: all elements in any order; orders are preferred lexicographically."""

    elements: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class SortKey(Node):
    """An item of ORDER BY; `nulls_first` is None where the text leaves it out, which stands for NULLS LAST."""

    column: Column
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Measure(Node):
    """An item of MEASURES, ``expression AS name``."""

    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Subset(Node):
    """An item of SUBSET, ``name = (members)``: a variable for the rows of its members."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """An item of DEFINE, ``name AS condition``."""

    name: str
    condition: Expression


Rows = Literal["one", "show empty", "omit empty", "with unmatched"]


@dataclass(frozen=True, slots=True)
class Skip(Node):
    """Where the search goes on behind a match; `variable` is that of FIRST and LAST. ``TO v`` is ``TO LAST v``."""

    to: Literal["PAST LAST ROW", "NEXT ROW", "FIRST", "LAST"]
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class RowPatternQuery(Node):
    """The clause MATCH_RECOGNIZE.

    `rows`: ``one`` for ONE ROW PER MATCH; otherwise ALL ROWS PER MATCH, and what becomes of empty
    matches and unmatched rows.
    `skip`: None where the text leaves it out, which stands for PAST LAST ROW.
    """

    pattern: PatternNode
    partition_by: tuple[Column, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    measures: tuple[Measure, ...] = ()
    rows: Rows = "one"
    skip: Skip | None = None
    within: Window | None = None
    subsets: tuple[Subset, ...] = ()
    definitions: tuple[Definition, ...] = ()
