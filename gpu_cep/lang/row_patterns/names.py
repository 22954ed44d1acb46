"""Compare identifiers as SQL does: unquoted ones without case, quoted ones as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpu_cep.lang import ast, literals
from gpu_cep.lang.row_patterns.ast import Anchor, Exclusion, Permute


def is_quoted(identifier: str) -> bool:
    """Return whether an identifier is written in quotes."""
    return identifier.startswith('"')


def spelling(identifier: str) -> str:
    """Return the name without its quotes.

    >>> spelling('"Up"'), spelling("Up")
    ('Up', 'Up')
    """
    return literals.read_text(identifier) if is_quoted(identifier) else identifier


def folded(identifier: str) -> str:
    """Return the text that equal identifiers share: an unquoted one is the same as its upper case in quotes.

    >>> folded("up") == folded("UP") == folded('"UP"') != folded('"up"')
    True
    """
    return spelling(identifier) if is_quoted(identifier) else identifier.upper()


def column_named(identifier: str, columns: Iterable[str]) -> str | None:
    """Return the column that an identifier names; None if there is none, or if several differ in case alone.

    >>> column_named("Price", ["ts", "PRICE"]), column_named('"Price"', ["ts", "PRICE"])
    ('PRICE', None)
    """
    known, name = tuple(columns), spelling(identifier)
    if name in known or is_quoted(identifier):
        return name if name in known else None
    alike = [column for column in known if column.upper() == name.upper()]
    return alike[0] if len(alike) == 1 else None


def variables_of(pattern: ast.PatternNode) -> Iterator[ast.Variable]:
    """Yield the variables of a pattern from left to right, each as often as it stands there."""
    return (leaf for leaf in _leaves(pattern) if isinstance(leaf, ast.Variable))


def anchors_of(pattern: ast.PatternNode) -> Iterator[Anchor]:
    """Yield the anchors of a pattern from left to right."""
    return (leaf for leaf in _leaves(pattern) if isinstance(leaf, Anchor))


def _leaves(pattern: ast.PatternNode) -> Iterator[ast.PatternNode]:
    match pattern:
        case ast.Repeat(element=element) | Exclusion(element=element):
            yield from _leaves(element)
        case ast.Seq(elements=elements) | ast.Or(elements=elements) | Permute(elements=elements):
            for each in elements:
                yield from _leaves(each)
        case _:
            yield pattern


def spellings(pattern: ast.PatternNode) -> dict[str, str]:
    """Return the variables of a pattern: the folded name -> how the pattern spells it first."""
    found: dict[str, str] = {}
    for variable in variables_of(pattern):
        found.setdefault(folded(variable.name), spelling(variable.name))
    return found
