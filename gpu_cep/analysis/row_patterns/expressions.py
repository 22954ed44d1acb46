"""Bind what only row patterns have in expressions: columns of variables, navigations, aggregates, CLASSIFIER, MATCH_NUMBER."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_cep.analysis.bound_expressions import Binding, Bound, Constant, Field, Operation
from gpu_cep.analysis.calls import computed_once
from gpu_cep.analysis.cases import apply_to_branches, is_null
from gpu_cep.analysis.coercion import FAULTY, cast, common_type
from gpu_cep.analysis.expressions import bind_expression, bind_operand
from gpu_cep.analysis.hints import CLOCKS, NOW, quoted_hint, text_hint
from gpu_cep.analysis.references import EVENT, aggregate_type
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import INTEGER, STRING, Kind
from gpu_cep.errors import nearest
from gpu_cep.lang.ast import Binary, Call, Case, Expression, In, Like, Literal, Node, Span
from gpu_cep.lang.row_patterns.ast import PHYSICAL, Classifier, Column, MatchNumber, Navigation, RowAggregate
from gpu_cep.lang.row_patterns.names import column_named, folded, is_quoted, spelling
from gpu_cep.lang.walks import children

ANY_ROW = ""
"""The name of the variable for every row of a match."""


def column_number(identifier: str, span: Span | None, scope: Scope, *, alone: bool = False) -> int | None:
    """Return the column that an identifier names; record a fault and return None if there is none, or more than one.

    `alone`: whether it is an operand without a variable, where a text or the time of now may be meant.
    """
    found = column_named(identifier, scope.schema.names)
    if found is not None:
        return scope.schema.index(found)
    alike = [name for name in scope.schema.names if name.upper() == spelling(identifier).upper()]
    if len(alike) > 1 and not is_quoted(identifier):
        choices = " or ".join(f'"{name}"' for name in alike)
        scope.faults.error(f"{identifier} may be any of {', '.join(alike)}", span, f"write it in quotes: {choices}")
    else:
        also = _as_variable(identifier, scope) or _as_no_column(identifier, span, scope, alone=alone)
        scope.faults.unknown("column", spelling(identifier), scope.schema.names, span, also=also)
    return None


def _as_variable(identifier: str, scope: Scope) -> str | None:
    """Return a hint that a variable of the pattern is no column."""
    if folded(identifier) not in [folded(variable.name) for variable in scope.variables]:
        return None
    return f"{identifier} is a variable: {identifier}.x is a column of its last row, and count({identifier}.*) the number of its rows"


def _as_no_column(identifier: str, span: Span | None, scope: Scope, *, alone: bool) -> str | None:
    """Return what a name in the query's text may mean beside a column."""
    if span is None:
        return None
    name = spelling(identifier)
    if is_quoted(identifier):
        return quoted_hint(name, scope)
    if alone and name.lower() in CLOCKS:
        return NOW
    return text_hint(name) if alone and identifier in scope.texts and nearest(name, scope.schema.names) is None else None


def names_beside_texts(node: Node, scope: Scope) -> Iterator[str]:
    """Yield the names that an expression compares with what may be a text: each may be a text itself."""
    for operand, other in _compared(node):
        if isinstance(operand, Column) and operand.variable is None and _may_be_text(other, scope):
            yield operand.name
    for child in children(node):
        if not isinstance(child, Literal):  # lists of values may be long
            yield from names_beside_texts(child, scope)


def _compared(node: Node) -> Iterator[tuple[Expression, Expression]]:
    """Yield each operand that a node tests for equality, with what it is to be equal to."""
    match node:
        case Binary(operator="=" | "<>", left=left, right=right):
            yield from ((left, right), (right, left))
        case In(operand=operand, items=items):
            yield from ((item, operand) for item in items)
        case Like(operand=operand, pattern=pattern):
            yield pattern, operand


def _may_be_text(node: Expression, scope: Scope) -> bool:
    """Return whether values that an expression reads may be texts."""
    match node:
        case Column(name=name):
            column = column_named(name, scope.schema.names)
            return column is None or scope.column(scope.schema.index(column)).type.kind is Kind.STRING
        case Navigation(argument=argument):
            return _may_be_text(argument, scope)
    return isinstance(node, Call | Case | Classifier | RowAggregate)


def variable_number(identifier: str | None, span: Span | None, scope: Scope) -> int | None:
    """Return the number of a variable or subset, of any row for None; record a fault and return None if there is none."""
    names = scope.names
    if identifier is None:
        return names.index(ANY_ROW)
    folds = [folded(variable.name) for variable in scope.variables]
    if folded(identifier) in folds:
        return folds.index(folded(identifier))
    scope.faults.unknown("variable", spelling(identifier), [spelling(name) for name in names if name != ANY_ROW], span)
    return None


@bind_expression.register
def _(node: Column, scope: Scope) -> Bound:
    variable = variable_number(node.variable, node.span, scope)
    column = column_number(node.name, node.span, scope, alone=node.variable is None)
    if variable is None or column is None:
        return FAULTY
    return Field(variable, column, scope.column(column).type)


@bind_expression.register
def _(node: Navigation, scope: Scope) -> Bound:
    argument = bind_operand(node.argument, scope)
    if argument == FAULTY:
        return FAULTY
    argument = _as_column(argument, node.argument, scope)
    physical = node.function in PHYSICAL
    name = node.function.lower() if physical else f"{(node.semantics or 'RUNNING').lower()} {node.function.lower()}"
    offset = int(physical) if node.offset is None else node.offset
    return Operation(name, (argument, Constant(offset, INTEGER)), argument.type)


@bind_expression.register
def _(node: RowAggregate, scope: Scope) -> Bound:
    name = f"{(node.semantics or 'RUNNING').lower()} {node.function}"
    if node.argument is None:
        variable = variable_number(node.variable, node.span, scope)
        return FAULTY if variable is None else Operation(name, (Binding(variable, None, EVENT),), INTEGER)
    argument = bind_operand(node.argument, scope)
    if argument == FAULTY:
        return FAULTY
    meeting = common_type((argument,))
    assert meeting is not None, "a type meets itself"
    argument = cast(argument, meeting)
    result = aggregate_type(node, argument.type, scope)
    if result is None:
        return FAULTY
    argument = _aggregated(argument, node, node.argument, scope)
    return FAULTY if argument == FAULTY else Operation(name, (argument,), result)


def _aggregated(argument: Bound, node: RowAggregate, written: Expression, scope: Scope) -> Bound:
    """Return what an aggregate reads at each row: in place of a text that is chosen, a column of these texts.

    For a count it is whether there is a text. Record a fault and return FAULTY for a text that no column holds.
    """
    if not _is_chosen_text(argument):
        return argument
    if node.function == "count":
        absent = apply_to_branches(argument, is_null)
        return Operation("case", (absent, Constant(None, INTEGER), Constant(1, INTEGER)), INTEGER)
    column = _as_column(argument, written, scope)
    if isinstance(column, Field):
        return column
    supported = "texts that the columns of one row decide, and CLASSIFIER() by itself"
    scope.faults.refuse(f"{node.function.replace('_distinct', '')}() of this text", f"supported are {supported}", node.span)
    return FAULTY


def _as_column(text: Bound, written: Expression, scope: Scope) -> Bound:
    """Return a text that the columns of one row decide as a column, since kernels cannot compute it; anything else as it is."""
    return computed_once(text, written, scope) if isinstance(text, Operation) and _is_chosen_text(text) else text


def _is_chosen_text(expression: Bound) -> bool:
    """Return whether an expression is a CASE of texts, or a constant one."""
    chosen = isinstance(expression, Constant) or (isinstance(expression, Operation) and expression.name == "case")
    return chosen and expression.type.kind is Kind.STRING


@bind_expression.register
def _(node: Classifier, scope: Scope) -> Bound:
    variable = variable_number(node.variable, node.span, scope)
    return FAULTY if variable is None else Operation("classifier", (Binding(variable, None, EVENT),), STRING)


@bind_expression.register
def _(node: MatchNumber, scope: Scope) -> Bound:
    return Operation("match_number", (), INTEGER)
