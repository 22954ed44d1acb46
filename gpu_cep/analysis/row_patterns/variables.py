"""Check the names of a row pattern: variables, subsets, definitions, measures, and the variable to skip to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpu_cep.analysis.faults import Faults
from gpu_cep.lang.ast import Or, PatternNode, Repeat, Seq, Span
from gpu_cep.lang.row_patterns.ast import Exclusion, Permute, RowPatternQuery, Subset
from gpu_cep.lang.row_patterns.names import folded, spelling, variables_of


def check_names(query: RowPatternQuery, faults: Faults) -> None:
    """Record names that are declared twice or not at all, and clauses that exclude each other."""
    declared = {folded(each.name): each.name for each in variables_of(query.pattern)}
    if not declared:
        faults.error("PATTERN has no variable, so that its matches have no row", hint="write PATTERN (A), which matches any row")
    _check_spellings(query, faults)
    _check_subsets(query, declared, faults)
    _refuse_twice("DEFINE", ((each.name, each.span) for each in query.definitions), faults)
    _refuse_twice("MEASURES", ((each.name, each.span) for each in query.measures), faults)
    subsets = {folded(each.name) for each in query.subsets}
    for definition in query.definitions:
        name = folded(definition.name)
        if name in subsets and name not in declared:
            faults.error(f"DEFINE of {definition.name}, which is a subset", definition.span, "define its members")
        elif name not in declared:
            faults.unknown("variable in DEFINE", spelling(definition.name), map(spelling, declared.values()), definition.span)
    if query.rows == "with unmatched":
        for exclusion in _exclusions(query.pattern):
            hint = "leave the brackets out, or write ALL ROWS PER MATCH without WITH UNMATCHED ROWS"
            faults.error("an exclusion {- … -} has no place with WITH UNMATCHED ROWS", exclusion.span, hint)


def _check_spellings(query: RowPatternQuery, faults: Faults) -> None:
    """Record variables that CLASSIFIER could not tell apart, such as ``a`` and ``"a"``."""
    seen: dict[str, str] = {}
    names: set[str] = set()
    for variable in variables_of(query.pattern):
        name, written = folded(variable.name), spelling(variable.name)
        if name not in names and written in seen:
            message = f"{variable.name} and {seen[written]} are two variables of one spelling"
            faults.error(message, variable.span, "an unquoted name is the quoted one in upper case")
        names.add(name)
        seen.setdefault(written, variable.name)


def _check_subsets(query: RowPatternQuery, declared: dict[str, str], faults: Faults) -> None:
    _refuse_twice("SUBSET", ((each.name, each.span) for each in query.subsets), faults)
    subsets = {folded(each.name) for each in query.subsets}
    for subset in query.subsets:
        if folded(subset.name) in declared:
            faults.error(f"SUBSET {subset.name} has the name of a variable of PATTERN", subset.span, "give it a name of its own")
        for member in subset.members:
            _check_member(subset, member, declared, subsets, faults)
        _refuse_twice(f"SUBSET {subset.name}", ((member, subset.span) for member in subset.members), faults)


def _check_member(subset: Subset, member: str, declared: dict[str, str], subsets: set[str], faults: Faults) -> None:
    if folded(member) in declared:
        return
    if folded(member) in subsets:
        faults.error(f"SUBSET {subset.name} has the subset {member} as a member", subset.span, "list the variables themselves")
    else:
        faults.unknown(f"variable in SUBSET {subset.name}", spelling(member), map(spelling, declared.values()), subset.span)


def _refuse_twice(where: str, names: Iterable[tuple[str, Span | None]], faults: Faults) -> None:
    seen = set()
    for name, span in names:
        if folded(name) in seen:
            faults.error(f"{where} names {name} twice", span)
        seen.add(folded(name))


def _exclusions(pattern: PatternNode) -> Iterator[Exclusion]:
    match pattern:
        case Exclusion():
            yield pattern
        case Repeat(element=element):
            yield from _exclusions(element)
        case Seq(elements=elements) | Or(elements=elements) | Permute(elements=elements):
            for each in elements:
                yield from _exclusions(each)
