"""Read rule sets from folders of queries, and from files of JSON and YAML."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import accumulate
from os import PathLike
from os.path import exists, isdir
from pathlib import Path
from typing import Any, TypeVar

from gpu_cep.errors import Diagnostic, EngineUnavailable, PatternError, nearest
from gpu_cep.rule_sets.rules import Rule, as_rules, option_faults

Name = TypeVar("Name", bound=Hashable)

# The suffix of a file that holds the text of one query.
_QUERY = ".cep"
_FIELDS = ("name", "pattern", "options", "description")
_SET_FIELDS = ("rules", "options")
# Texts of JSON, which may hold brackets, and brackets.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
# How the text of a query begins.
_TEXT = re.compile(r"\s*(?:FROM|PARTITION\s+BY|PATTERN|DEFINE|MATCH_RECOGNIZE)\b", re.IGNORECASE)
# The tag of a key of YAML that stands for the names of another mapping.
_MERGE = "tag:yaml.org,2002:merge"


def load_rules(path: str | PathLike[str]) -> dict[str, Rule]:
    """Read a rule set, for :func:`gpu_cep.match_all`.

    Parameters
    ----------
    path
        A folder of ``.cep`` files, each of which holds a query and gives it its name; one such file;
        or a file of JSON or YAML (with PyYAML). That holds a list of rules, each with ``name``,
        ``pattern`` and, if wanted, ``options`` and ``description``; or a mapping of names to
        patterns or to such rules; or a mapping with ``rules``, one of these, and ``options`` for
        all of them.

    Returns
    -------
    dict of Rule
        The rules by name, in the order of the file, or of the names of files.

    Raises
    ------
    PatternError
        There is no such file, or it holds no rule set; the message says what was expected.
    EngineUnavailable
        It is YAML, and PyYAML is not installed.
    """
    if not isinstance(path, (str, PathLike)):
        hint = "match_all(events, patterns) takes a mapping as it is" if isinstance(path, Mapping) else None
        raise PatternError([Diagnostic(f"load_rules() takes the path of a file or folder, not {type(path).__name__}", hint=hint)])
    found = Path(path)
    # a text that is no name of a file is not there, where Path would raise
    if isdir(found):
        return _rules_of_folder(found)
    suffix = found.suffix.lower()
    if suffix == _QUERY:
        return {found.stem: Rule(_text(found))}
    reader = _READERS.get(suffix)
    if reader is None and not exists(found):
        hint = "match() takes the text of a query" if _TEXT.match(str(path)) else None
        raise PatternError([Diagnostic(f"cannot read the rules {found}: there is no such file or folder", hint=hint)])
    if reader is None:
        known = ", ".join((_QUERY, *_READERS))
        expected = f"expected a folder of {_QUERY} files, or one of {known}"
        raise PatternError(f"{found}: cannot tell the format of a rule set from its suffix; {expected}")
    return _rules_of(reader(found), str(found))


def _rules_of_folder(folder: Path) -> dict[str, Rule]:
    """Return a rule for each file of a query in the folder itself, by the file's name."""
    try:
        beside = sorted(folder.iterdir())
    except OSError as fault:
        raise PatternError(f"cannot read the rules {folder}: {fault.strerror or fault}") from None
    files = [file for file in beside if file.suffix.lower() == _QUERY]
    if not files:
        told = f"{folder}: there is no {_QUERY} file in this folder; each holds the text of a query"
        others = [each for each in beside if each.name[0] != "." and (each.is_dir() or each.suffix.lower() in _READERS)]
        raise PatternError([Diagnostic(told, hint=f"a file or folder in it is read by its own path: {others[0]}" if others else None)])
    _refuse_twins(_twins(file.stem for file in files), folder)
    return {file.stem: Rule(_text(file)) for file in files}


def _text(file: Path) -> str:
    try:
        # without the mark that some editors write before the text
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise PatternError(f"cannot read the rules {file}: it is not UTF-8") from None
    except OSError as fault:
        reason = "there is no such file or folder" if isinstance(fault, FileNotFoundError) else fault.strerror or str(fault)
        raise PatternError(f"cannot read the rules {file}: {reason}") from None


def _read_json(file: Path) -> Any:
    text = _text(file)
    try:
        return json.loads(text.strip() or "null", object_pairs_hook=lambda pairs: _without_twins(pairs, file))
    except json.JSONDecodeError as fault:
        raise PatternError(f"cannot read the rules {file}: {fault}") from None
    except RecursionError:
        raise _too_deep(file, _deepest_line(text)) from None


def _too_deep(file: Path, line: int) -> PatternError:
    """Return the error of a file with more levels of values than its reader follows, in a line counted from 1."""
    return PatternError(f"cannot read the rules {file}: line {line}: values are nested too deep; expected rules, each with its options")


def _deepest_line(text: str) -> int:
    """Return the line of JSON with the innermost value, counted from 1."""
    brackets = [found for found in _BRACKETS.finditer(text) if found[0][0] != '"']
    depths = list(accumulate(1 if found[0] in "[{" else -1 for found in brackets))
    return text.count("\n", 0, brackets[depths.index(max(depths))].start()) + 1


def _without_twins(pairs: list[tuple[str, Any]], file: Path) -> dict[str, Any]:
    """Return the pairs as a mapping; a name that is there twice would lose a rule."""
    _refuse_twins(_twins(name for name, _ in pairs), file)
    return dict(pairs)


def _twins(names: Iterable[Name]) -> list[Name]:
    """Return the names that are there more than once, in order."""
    return [name for name, number in Counter(names).items() if number > 1]


def _refuse_twins(twins: list[str], file: Path) -> None:
    """Raise PatternError for names that a mapping has more than once, if there are any."""
    _raise_all([Diagnostic(f"{file}: {name!r} is there more than once") for name in twins])


def _raise_all(faults: list[Diagnostic]) -> None:
    """Raise PatternError with all faults, if there are any."""
    if faults:
        raise PatternError(faults)


def _read_yaml(file: Path) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise EngineUnavailable(f"reading {file} needs PyYAML, which is not installed: install pyyaml, or give JSON") from None
    text = _text(file)
    try:
        return _constructed(yaml.SafeLoader(text), file)
    except yaml.YAMLError as fault:
        told = f"cannot read the rules {file}: {' '.join(str(fault).split())}"
        raise PatternError([Diagnostic(told, hint="a pattern with ': ' or ' #' stands in quotes, or below |")]) from None


def _constructed(loader: Any, file: Path) -> Any:
    """Return the value that a loader of YAML reads."""
    try:
        node = loader.get_single_node()
        for names in _names_of_mappings(node, set()):
            _refuse_twins([name for _, name in _twins(names)], file)
        return None if node is None else loader.construct_document(node)
    except RecursionError:
        raise _too_deep(file, loader.line + 1) from None


def _names_of_mappings(node: Any, seen: set[int]) -> Iterator[list[tuple[str, str]]]:
    """Yield the types and names that each mapping has in a node of YAML; an alias may lead back to one that was `seen`."""
    if node is None or node.id == "scalar" or id(node) in seen:
        return
    seen.add(id(node))
    inside = node.value
    if node.id == "mapping":
        yield [(name.tag, name.value) for name, _ in node.value if name.id == "scalar" and name.tag != _MERGE]
        inside = [each for _, each in node.value]
    for each in inside:
        yield from _names_of_mappings(each, seen)


_READERS: Mapping[str, Callable[[Path], Any]] = {".json": _read_json, ".yaml": _read_yaml, ".yml": _read_yaml}


def _rules_of(held: Any, file: str) -> dict[str, Rule]:
    """Return the rules that the value of a file stands for."""
    common: Mapping[str, Any] = {}
    if isinstance(held, dict) and "rules" in held and not isinstance(held["rules"], str):
        _refuse_others(held, _SET_FIELDS, file)
        common, held = _mapping(held.get("options") or {}, f"{file}: options"), held["rules"]
        _raise_all(list(option_faults(f"{file}: options", common)))
    if held is None or held in ([], {}):
        raise PatternError(f"{file}: there is no pattern in it; expected a list of rules, or a mapping of names to patterns")
    if isinstance(held, dict):
        _refuse_one_rule(held, file)
        wrong = [name for name in held if not isinstance(name, str)]
        _raise_all([Diagnostic(f"{file}: the name of a pattern must be text, not {name!r}", hint="put it in quotes") for name in wrong])
        named = [(name, _named_rule(rule, name, f"{file}: rule {name!r}", common)) for name, rule in held.items()]
    elif isinstance(held, list):
        named = [(_name(rule, number, file), _rule(rule, f"{file}: rule {number}", common)) for number, rule in enumerate(held, 1)]
    else:
        raise PatternError(f"{file}: expected a list of rules, or a mapping of names to patterns, not {type(held).__name__}")
    _raise_all([Diagnostic(f"{file}: there is more than one rule {name!r}") for name in _twins(name for name, _ in named)])
    return as_rules(dict(named))


def _refuse_one_rule(held: Mapping[Any, Any], file: str) -> None:
    """Raise PatternError if a mapping is a rule by itself, and not one of names to rules."""
    if {"name", "pattern"} <= held.keys() <= set(_FIELDS):
        raise PatternError(f"{file}: this is one rule, {held['name']!r}; expected a list of rules, or a mapping of names to patterns")


def _named_rule(held: Any, name: str, where: str, common: Mapping[str, Any]) -> Rule:
    """Return a rule that a mapping gives a name, which its own name must not contradict."""
    own = held.get("name") if isinstance(held, dict) else None
    if own not in (None, name):
        raise PatternError(f"{where}: its 'name' is {own!r}; leave one of the two names out")
    return _rule(held, where, common)


def _rule(held: Any, where: str, common: Mapping[str, Any]) -> Rule:
    if isinstance(held, str):
        return Rule(held, dict(common))
    rule = _mapping(held, where)
    _refuse_others(rule, _FIELDS, where)
    pattern, description = rule.get("pattern"), rule.get("description") or ""
    if not isinstance(pattern, str):
        raise PatternError(f"{where}: 'pattern' must be the text of a query, not {pattern!r}")
    if not isinstance(description, str):
        raise PatternError(f"{where}: 'description' must be text, not {description!r}")
    return Rule(pattern, {**common, **_mapping(rule.get("options") or {}, f"{where}: options")}, description)


def _name(rule: Any, number: int, file: str) -> str:
    name = rule.get("name") if isinstance(rule, dict) else None
    if name is not None and not isinstance(name, str):
        raise PatternError([Diagnostic(f"{file}: rule {number}: 'name' must be text, not {name!r}", hint="put it in quotes")])
    if name is None:
        raise PatternError(f"{file}: rule {number} has no 'name'; expected a mapping with 'name' and 'pattern'")
    return name


def _mapping(held: Any, where: str) -> dict[str, Any]:
    if not isinstance(held, dict):
        raise PatternError(f"{where}: expected a mapping, not {held!r}")
    return held


def _refuse_others(held: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    _raise_all([
        Diagnostic(f"{where}: {name!r} is unknown; expected {', '.join(known)}", hint=nearest(str(name), known))
        for name in held if name not in known
    ])  # fmt: skip
