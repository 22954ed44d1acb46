"""Turn properties into label tables, comparisons and programs (a rule of the planner).

Precondition: conditions on one event of one variable.
Rewrite: top-level ANDs are split. A test of one text column is decided once per distinct value. A
comparison of a column with a constant is a vectorised pass. Any other test is a program.
Equal tests of several variables become one test with several label bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpu_cep.analysis.bound import BoundQuery, Condition, ConditionKind
from gpu_cep.analysis.bound_expressions import Bound, Constant, Field, Operation
from gpu_cep.analysis.operators import MIRRORED
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.identity import while_alive
from gpu_cep.plan.event_plan import BankLayout, CodeProperty, ComparisonProperty, PlanT, ProgramProperty, Property
from gpu_cep.plan.programs import Leaf, Program, Slot, compile_program, is_float, leaves, string_predicate_column


def plan_properties(plan: PlanT) -> PlanT:
    """Return the plan with the label tests of all variables, cheap ones first.

    Examples
    --------
    >>> before = draft("PATTERN SEQ(A a, b) WHERE a.x > 3 AND b.x > 3 AND b.x * 2 > b.k")
    >>> before.properties
    ()
    >>> code, comparison, program = plan_properties(before).properties
    >>> code.column, code.bits
    (1, 1)
    >>> comparison
    ComparisonProperty(column=3, comparison='gt', constant=3, bits=3)
    >>> program.text, program.bits
    ('b.x * 2 > b.k', 2)
    """
    predicates: dict[int, dict[Bound, int]] = {}
    comparisons: dict[tuple[int, str, int | float], int] = {}
    programs: dict[Bound, tuple[int, str]] = {}
    for condition, conjunct, bits in property_conjuncts(plan.query):
        column = string_predicate_column(conjunct)
        comparison = comparison_of(conjunct)
        anonymous = _anonymous(conjunct)
        if column is not None:
            group = predicates.setdefault(column, {})
            group[anonymous] = group.get(anonymous, 0) | bits
        elif comparison is not None:
            comparisons[comparison] = comparisons.get(comparison, 0) | bits
        else:
            programs[anonymous] = (programs.get(anonymous, (0, ""))[0] | bits, condition.text)
    tests: tuple[Property, ...] = (
        *(CodeProperty(column, tuple(group.items())) for column, group in predicates.items()),
        *(ComparisonProperty(*comparison, bits) for comparison, bits in comparisons.items()),
        *(_program(expression, bits, text) for expression, (bits, text) in programs.items()),
    )
    return replace(plan, properties=tests)


# A rule of a set is asked for them a dozen times.
@while_alive
def property_conjuncts(query: BoundQuery) -> tuple[tuple[Condition, Bound, int], ...]:
    """Return each operand of the top-level ANDs of all properties, but for TRUE, which all events satisfy.

    With it come its condition and the label bits of its variables.
    """
    return tuple(_find_conjuncts(query))


def _find_conjuncts(query: BoundQuery) -> Iterator[tuple[Condition, Bound, int]]:
    """Yield the operands."""
    everyone = (1 << len(query.variables)) - 1
    for condition in query.conditions:
        if condition.kind is ConditionKind.PROPERTY:
            bits = 1 << condition.variables[0] if condition.variables else everyone
            conjuncts = split_conjunction(condition.expression)
            yield from ((condition, conjunct, bits) for conjunct in conjuncts if not _is_true(conjunct))


def _is_true(expression: Bound) -> bool:
    """Return whether the expression is TRUE itself."""
    return isinstance(expression, Constant) and expression.value is True


def split_conjunction(expression: Bound) -> Iterator[Bound]:
    """Yield the operands of a top-level AND, also of nested ones, or the expression itself."""
    if isinstance(expression, Operation) and expression.name == "and":
        for argument in expression.arguments:
            yield from split_conjunction(argument)
    else:
        yield expression


def _anonymous(expression: Bound) -> Bound:
    """Return the property with variable 0 in place of its own, so that equal tests compare equal."""
    match expression:
        case Operation():
            return replace(expression, arguments=tuple(_anonymous(argument) for argument in expression.arguments))
        case Field():
            return Field(0, expression.column, expression.type)
    return expression


def comparison_of(expression: Bound) -> tuple[int, str, int | float] | None:
    """Return ``column φ constant`` as (column, φ, constant), or None for other expressions.

    A bare truth value is compared with 1 or 0.
    """
    match expression:
        case Field(column=column) if expression.type.kind is Kind.BOOLEAN:
            return column, "eq", 1
        case Operation(name="not", arguments=(Field(column=column) as attribute,)) if attribute.type.kind is Kind.BOOLEAN:
            return column, "eq", 0
        case Operation(name=name, arguments=(Field() as attribute, Constant() as constant)) if name in MIRRORED:
            comparison = name
        case Operation(name=name, arguments=(Constant() as constant, Field() as attribute)) if name in MIRRORED:
            comparison = MIRRORED[name]
        case _:
            return None
    if constant.value is None or attribute.type.kind is Kind.STRING:
        return None
    value = constant.value
    return attribute.column, comparison, float(value) if is_float(attribute.type) else int(value)


def _program(expression: Bound, bits: int, text: str) -> ProgramProperty:
    program, layout = compile_over_event(expression)
    return ProgramProperty(program, layout, bits, text)


def compile_over_event(expression: Bound) -> tuple[Program, BankLayout]:
    """Return an expression over one event as a program, which reads the event at role 0, and the bank of columns that it reads."""
    fields = [leaf for leaf in leaves(expression) if isinstance(leaf, Field)]
    layout = layout_of((field.column, field.type) for field in fields)
    slots: dict[Leaf, Slot] = {field: slot_of(field, layout, 0) for field in fields}
    return compile_program(expression, slots.__getitem__), layout


def layout_of(columns: Iterable[tuple[int, DataType]]) -> BankLayout:
    """Return the bank layout of columns that are read as values of a type, each kept once in the part of that type.

    A list is among the ints where only whether it is NULL is asked.
    """
    ints, floats, vectors = dict[int, None](), dict[int, None](), dict[int, None]()
    for column, data_type in columns:
        part = vectors if data_type.length else floats if is_float(data_type) else ints
        part[column] = None
    return BankLayout(tuple(ints), tuple(floats), tuple(vectors))


def slot_of(leaf: Field, layout: BankLayout, role: int) -> Slot:
    """Return where a program finds a field in a bank of this layout; a column below 0 is a derived one."""
    if leaf.column < 0:
        return Slot(is_float=True, column=len(layout.floats) - 1 - leaf.column, role=role)
    if leaf.type.length:
        return Slot(is_float=False, column=layout.vectors.index(leaf.column), role=role, is_vector=True)
    floating = is_float(leaf.type)
    return Slot(floating, (layout.floats if floating else layout.ints).index(leaf.column), role)
