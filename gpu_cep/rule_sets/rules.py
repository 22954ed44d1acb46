"""Define the rules of a rule set: named patterns, each with options of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpu_cep.errors import CepError, DiagnosedError, Diagnostic, PatternError, nearest
from gpu_cep.keywords import ArrivalOptions, MatchOptions, MeaningOptions, RoleOptions, RuleSetOptions, RunOptions

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern

# What a rule may say for itself; what a result holds is the same for all rules of a set.
OWN = (*RoleOptions.__annotations__, *MeaningOptions.__annotations__, *RunOptions.__annotations__)
# What calls say for all rules of a set: of matching, and of streams.
_OF_ALL = {*MatchOptions.__annotations__, *RuleSetOptions.__annotations__, *ArrivalOptions.__annotations__}.difference(OWN)
# What to do with patterns that are no mapping.
_REMEDIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((str, PathLike), "load_rules(path) reads them from files, and match() takes one pattern"),
    ((Sequence,), "give each of them a name"),
    ((object,), "match_all(events, patterns) takes the events first, and stream_all(patterns, schema) the patterns"),
)
# How many patterns of which the same is said are named.
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of a rule set, with options of its own.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import gpu_cep as cep
    >>> steps = pa.table({"ts": [1, 2, 3], "type": ["View", "Buy", "Buy"]})
    >>> first = cep.Rule("PATTERN SEQ(View v, Buy b)", {"after_match": "skip_to_next"}, "the first purchase")
    >>> every = cep.Rule("PATTERN SEQ(View v, Buy b)", {"strategy": "skip_till_any_match"})
    >>> cep.match_all(steps, {"first": first, "every": every}, output="count").to_pylist()
    [{'pattern': 'first', 'count': 1}, {'pattern': 'every', 'count': 2}]

    Parameters
    ----------
    pattern
        The query, as in :func:`gpu_cep.match`.
    options
        Keywords of :func:`gpu_cep.match` for this rule alone, in place of those of the call: what
        columns are, what the query means, and how it runs.
    description
        What the rule is for; nothing depends on it.
    """

    pattern: Pattern
    options: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""


def as_rules(patterns: object) -> dict[str, Rule]:
    """Return the rules of a mapping of names to patterns or rules.

    Raises
    ------
    PatternError
        It is no such mapping, is empty, or a rule has an option that none may have.
    """
    if not isinstance(patterns, Mapping):
        told = f"patterns must be a mapping of names to patterns, such as {{'name': pattern}}, not {type(patterns).__name__}"
        raise PatternError([Diagnostic(told, hint=next(hint for kinds, hint in _REMEDIES if isinstance(patterns, kinds)))])
    if not patterns:
        raise PatternError("there is no pattern; give at least one, as {'name': pattern}")
    wrong = [name for name in patterns if not isinstance(name, str)]
    if wrong:
        raise PatternError([Diagnostic(f"the name of a pattern must be text, not {name!r}") for name in wrong])
    rules = {name: given if isinstance(given, Rule) else Rule(given) for name, given in patterns.items()}
    faults = [fault for name, rule in rules.items() for fault in _faults(name, rule)]
    if faults:
        raise PatternError(faults)
    return rules


def check_split(split: object) -> None:
    """Raise PatternError unless `split` is True or False: any text would be true."""
    if not isinstance(split, bool):
        raise PatternError(f"split must be True or False, not {split!r}")


def _faults(name: str, rule: Rule) -> Iterator[Diagnostic]:
    """Yield what is wrong with a rule, apart from its query."""
    if isinstance(rule.pattern, (Mapping, Rule)):
        hint = "write Rule(pattern, {keyword: value})"
        yield Diagnostic(f"pattern {name!r}: a rule is a pattern, or a Rule of one, not {type(rule.pattern).__name__}", hint=hint)
    yield from option_faults(f"pattern {name!r}", rule.options)


def option_faults(where: str, options: object) -> Iterator[Diagnostic]:
    """Yield what is wrong with the options of rules; messages begin with `where` they stand."""
    if not isinstance(options, Mapping):
        hint = "write Rule(pattern, {keyword: value}); the name of a rule is its key in the mapping"
        yield Diagnostic(f"{where}: options must be a mapping of keywords to values, not {options!r}", hint=hint)
        return
    for option in options:
        if option not in OWN:
            of_all = f"{option}= is the same for all rules: give it to the call" if option in _OF_ALL else None
            message = f"{where}: {option!r} is no option of a rule; known: {', '.join(OWN)}"
            yield Diagnostic(message, hint=of_all or nearest(str(option), OWN))


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Add the name of the pattern to the message of any error raised inside."""
    try:
        yield
    except CepError as fault:
        raise named(name, fault) from fault


def named(name: str, fault: CepError) -> CepError:
    """Return an error of the same kind whose message names the pattern."""
    if isinstance(fault, DiagnosedError):
        told = [replace(each, message=f"{_subject([name])}{each.message}") for each in fault.diagnostics]
        return type(fault)(told, fault.text)
    return type(fault)(f"{_subject([name])}{fault}")


def united(faults: Mapping[str, CepError]) -> CepError:
    """Return one error for those of several patterns, of their kind if they have one; errors name their patterns already.

    What is said alike of several patterns, such as of a keyword of the call, is said once.
    """
    found = list(faults.values())
    kinds = {type(each) for each in found}
    if len(found) == 1:
        return found[0]
    diagnosed = {name: fault for name, fault in faults.items() if isinstance(fault, DiagnosedError)}
    if len(diagnosed) < len(found):
        kind = kinds.pop() if len(kinds) == 1 else CepError
        return kind("\n".join(map(str, found)))
    names_of: dict[str, list[str]] = {}
    for name, fault in diagnosed.items():
        for each in fault.diagnostics:
            text = each.render(fault.text)
            alike = text.removeprefix(_subject([name]))
            # what has a place in a query begins with the place
            names_of.setdefault(alike, []).extend([name] if alike != text else [])
    told = [Diagnostic(f"{_subject(names)}{text}" if names else text) for text, names in names_of.items()]
    return PatternError(told) if len(kinds) > 1 else type(found[0])(told)  # type: ignore[arg-type]


def _subject(names: Sequence[str]) -> str:
    """Return how a message begins that is about these patterns."""
    if len(names) == 1:
        return f"pattern {names[0]!r}: "
    others = len(names) - _MOST_NAMED
    listed = ", ".join(map(repr, names[:_MOST_NAMED]))
    return f"patterns {listed}{f' and {others:,} more' if others > 0 else ''}: "
