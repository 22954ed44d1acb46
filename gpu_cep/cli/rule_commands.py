"""Match and check rule sets, for the commands that take ``--rules``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer

from gpu_cep.choices import OnError
from gpu_cep.cli.files import TableTarget, events_from, whole
from gpu_cep.cli.options import ABOUT_MATCHES
from gpu_cep.cli.outcome import OTHER_FAULT, QUERY_FAULT, json_of, say
from gpu_cep.cli.progress import watch
from gpu_cep.cli.tables import print_json_lines, print_rows
from gpu_cep.cli.whole_files import print_line
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.errors import CepError, DiagnosedError
from gpu_cep.rule_sets.files import load_rules
from gpu_cep.rule_sets.matching import match_all
from gpu_cep.rule_sets.plans import plan_rules
from gpu_cep.rule_sets.rules import Rule, united

if TYPE_CHECKING:
    from gpu_cep.engine.input.sources import Source

RulesFrom = Annotated[
    str | None,
    typer.Option(
        "--rules",
        metavar="RULES",
        help="Many patterns in place of PATTERN: a folder of .cep files, or a file of JSON or YAML.",
        rich_help_panel=ABOUT_MATCHES,
    ),
]
OnFailure = Annotated[
    OnError,
    typer.Option(help="With --rules: whether a pattern that fails ends the command, or is reported.", rich_help_panel=ABOUT_MATCHES),
]


def match_rules(
    events: Sequence[str], source: str, asked: Mapping[str, Any], form: str | None, on_error: OnError, target: TableTarget | None,
    limit: int | None, *, as_json: bool,
) -> int:  # fmt: skip
    """Write or print the matches of a rule set; return the number of rows. Failed patterns are warned of."""
    rules = load_rules(source)
    with watch("matching") as profile:
        found = match_all(_events(events, rules, asked, form), rules, on_error=on_error, profile=profile, **asked)
    if target is not None:
        target.write(found)
    elif as_json:
        print_json_lines(found, "row", limit)
    else:
        print_rows(found, "row", limit)
    return int(found.num_rows)


def validate_rules(events: Sequence[str], source: str, asked: Mapping[str, Any], form: str | None, *, as_json: bool) -> None:
    """Check each rule of a set, with events also whether it fits their columns; print all faults by name."""
    rules = load_rules(source)
    failed = _faults(_events(events, rules, asked, form), rules, asked) if events else _parse_faults(rules)
    if not failed:
        known = {"valid": True, "rules": list(rules), "faults": {}}
        say(f"{len(rules):,} patterns are valid" if len(rules) > 1 else "the pattern is valid", known, as_json=as_json)
        return
    if not as_json:
        raise united(failed)
    print_line(json_of({"valid": False, "rules": list(rules), "faults": {name: str(fault) for name, fault in failed.items()}}))
    raise typer.Exit(QUERY_FAULT if all(isinstance(fault, DiagnosedError) for fault in failed.values()) else OTHER_FAULT)


def _parse_faults(rules: Mapping[str, Rule]) -> dict[str, CepError]:
    """Return the errors of queries that can be seen without events, by name."""
    from gpu_cep.queries.plans import as_query
    from gpu_cep.queries.row_plans import is_row_pattern
    from gpu_cep.rule_sets.rules import named

    failed: dict[str, CepError] = {}
    for name, rule in rules.items():
        try:
            if not is_row_pattern(rule.pattern):
                as_query(rule.pattern)
        except CepError as fault:
            failed[name] = named(name, fault)
    return failed


def _faults(events: Source | pa.Table, rules: Mapping[str, Rule], asked: Mapping[str, Any]) -> dict[str, CepError]:
    return dict(plan_rules(no_rows(events.schema), rules, asked).failed)


def _events(events: Sequence[str], rules: Mapping[str, Rule], asked: Mapping[str, Any], form: str | None) -> Source | pa.Table:
    """Return the events, with text read as times in every column that some rule takes for the timestamp."""
    columns = dict.fromkeys(rule.options.get("timestamp", asked.get("timestamp", "ts")) for rule in rules.values())
    first, *others = columns
    found = events_from(events, first, form)
    if others and isinstance(found, pa.Table):
        from gpu_cep.cli.timestamps import read_times
        from gpu_cep.engine.input.encodings import holds_text

        for column in others:
            place = found.schema.get_field_index(column)
            if place >= 0 and holds_text(found.schema.field(place).type):
                found = read_times(whole(found), column, form)
    return found
