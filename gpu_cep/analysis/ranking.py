"""Bind the expression by which the matches of one first event are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpu_cep.analysis.bound import Ranking
from gpu_cep.analysis.conditions import reads
from gpu_cep.analysis.expressions import bind_operand
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.scope import Clause, Scope
from gpu_cep.errors import Diagnostic, PatternError, PatternSyntaxError
from gpu_cep.lang.ast import Expression, Query, Span
from gpu_cep.lang.format import format_expression
from gpu_cep.lang.literals import write_name
from gpu_cep.lang.parser import parse

_DIRECTION = re.compile(r"\s(asc|desc)\s*$", re.IGNORECASE)
_FORM = "order_matches_by= takes one expression of the match, then asc or desc: 'sum(b.x) desc'"


def bind_ranking(text: str, scope: Scope) -> Ranking:
    """Return the expression and the direction that `text` says.

    Raises
    ------
    PatternError
        It is no expression that has one value for each match; the error shows the place in `text`.
    """
    written, descending = read_ranking(text, [name for name in scope.names if name not in scope.hidden])
    faults = Faults()
    bound = bind_operand(written, replace(scope, clause=Clause.RETURN, faults=faults))
    if not faults.count and not any(reads(bound)):
        faults.error(f"{format_expression(written)} is the same for all matches", written.span, _FORM)
    if faults.count:
        raise PatternError(_above(faults.errors or faults.refusals), text)
    return Ranking(bound, descending, format_expression(written))


def read_ranking(text: str, variables: Iterable[str]) -> tuple[Expression, bool]:
    """Return the expression of a match of `variables` that `text` says, and whether the greatest come first.

    Raises as :func:`bind_ranking`.
    """
    direction = _DIRECTION.search(text)
    written = _expression(text if direction is None else text[: direction.start()], variables)
    return written, direction is not None and direction[1].lower() == "desc"


def _expression(text: str, variables: Iterable[str]) -> Expression:
    """Return the one expression that `text` holds: it is parsed as RETURN, on a line of its own so that columns stay as they are."""
    if not text.strip():
        raise PatternSyntaxError(f"order_matches_by= is empty; {_FORM}")
    try:
        query = parse(f"PATTERN SEQ({', '.join(map(write_name, variables))}) RETURN\n{text}")
    except PatternSyntaxError as error:
        raise PatternSyntaxError(_above(error.diagnostics), text) from None
    if isinstance(query, Query) and query.within is None and len(query.returns) == 1 and query.returns[0].name is None:
        return query.returns[0].expression
    raise PatternSyntaxError(f"{text!r} is more than an expression; {_FORM}")


def _above(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics with places in the text itself, one line above, and with the name of the keyword."""
    return [replace(each, message=f"order_matches_by: {each.message}", span=_line_above(each)) for each in diagnostics]


def _line_above(diagnostic: Diagnostic) -> Span | None:
    span = diagnostic.span
    return None if span is None else replace(span, line=max(1, span.line - 1), end_line=max(1, span.end_line - 1))
