"""Define the commands: each reads its arguments, calls the library and prints the outcome.

A module that loads the compiler is imported in the command that needs it: help stays quick.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import pyarrow.parquet
import typer

from gpu_cep import __version__, api
from gpu_cep.cli.files import TableTarget, check_target, events_from, in_folder, table_target, whole
from gpu_cep.cli.funnel import progress, refuse_limit_of_file
from gpu_cep.cli.options import (
    ABOUT_OUTPUT,
    BOUNDS,
    COLUMNS,
    OUTPUT,
    QUERY,
    AsJson,
    EventsArgument,
    Limit,
    MatchesOut,
    OptionalEvents,
    TimestampFormat,
    takes,
)
from gpu_cep.cli.outcome import QUERY_FAULT, USAGE_FAULT, fail, json_of, report_faults, say
from gpu_cep.cli.progress import show_count, watch
from gpu_cep.cli.row_patterns import bound_rows, check_query, sql
from gpu_cep.cli.rule_commands import OnFailure, RulesFrom, match_rules, validate_rules
from gpu_cep.cli.samples import CHUNK, SAMPLES
from gpu_cep.cli.tables import count_of, print_json_lines, print_rows, print_table
from gpu_cep.cli.whole_files import PIPE, print_line, write_whole
from gpu_cep.errors import DiagnosedError
from gpu_cep.keywords import read_keywords
from gpu_cep.pictures.files import FORMATS
from gpu_cep.plan.explain import DRAWN, Explanation
from gpu_cep.plan.interval_explain import IntervalExplanation
from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
from gpu_cep.plan.timeouts import by_kind
from gpu_cep.queries.plans import as_query, make_plan
from gpu_cep.queries.row_plans import is_row_pattern

if TYPE_CHECKING:
    from gpu_cep.analysis.options import Options
    from gpu_cep.cli.rates import Measurements
    from gpu_cep.display.match_view import MatchView
    from gpu_cep.display.plotting import Timeline
    from gpu_cep.engine.input.sources import Source
    from gpu_cep.pictures.picture import Picture
    from gpu_cep.plan.interval_plan import AnyPlan

    Drawing = Explanation | IntervalExplanation | RowPatternExplanation | Picture | Timeline

Target = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write.", rich_help_panel=ABOUT_OUTPUT)]
Margin = Annotated[float, typer.Option(metavar="SHARE", help="What is drawn on either side, as a share of the match.")]

app = typer.Typer(
    help="Find patterns of events in files and pipes.\n\ngpu-cep match 'PATTERN SEQ(A a, B b) WITHIN 1 hour' events.parquet",
    epilog="To begin with: gpu-cep gen hospital -o events.parquet writes events, and prints a query to try on them.\n\n"
    "Exit codes: 0 done, 1 the query is at fault, 2 the command line is, 3 the events are, 4 anything else.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        with report_faults():
            print_line(f"gpu-cep {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")] = False,
) -> None:
    """Find patterns in files and pipes of events."""


@app.command()
@takes(QUERY | OUTPUT | COLUMNS | BOUNDS)
def match(
    text: str,
    asked: Mapping[str, Any],
    events: OptionalEvents = None,
    rules: RulesFrom = None,
    on_error: OnFailure = "raise",
    timestamp_format: TimestampFormat = None,
    out: MatchesOut = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Find the matches of a pattern, or of many. Without -o, print them for reading, or with --json as lines of JSON."""
    if not events:
        fail("EVENTS is missing", USAGE_FAULT)
    refuse_limit_of_file(out, limit)
    if rules is not None:
        target = None if out is None else table_target(out)
        rows = match_rules(events, rules, asked, timestamp_format, on_error, target, limit, as_json=as_json)
    elif out is not None:
        rows = _write_matches(table_target(out), events, text, asked, timestamp_format)
    else:
        _print_matches(events, text, asked, timestamp_format, limit, as_json=as_json)
        return
    if out is not None:
        say(f"{out}: {count_of(rows, 'row')}", {"out": out, "rows": rows}, as_json=as_json, aside=out == PIPE)


def _print_matches(
    events: Sequence[str], text: str, asked: Mapping[str, Any], timestamp_format: str | None, limit: int | None, *, as_json: bool
) -> None:
    """Find the matches of a pattern and print them: as lines of JSON, or for reading with the keys first."""
    with watch("matching") as profile:
        given = _events(events, asked, timestamp_format)
        view = None if as_json or is_row_pattern(text) else _view(given, text, asked)
        found = api.match(given, text if view is None else view.asked, profile=profile, **asked)
    matches = found.table if asked.get("output") == "compressed" else found
    noun = "match" if asked.get("output", "matches") == "matches" and not asked.get("timeouts") else "row"
    if as_json:
        print_json_lines(matches, noun, limit)
    elif view is None:
        print_rows(matches, "row", limit)
    else:
        print_rows(view.shorten(view.put_keys_first(matches)), noun, limit)


def _write_matches(target: TableTarget, events: Sequence[str], text: str, asked: Mapping[str, Any], timestamp_format: str | None) -> int:
    """Write the matches of a pattern as they are found, and return the number of rows."""
    with watch("matching") as profile:
        given = _events(events, asked, timestamp_format)
        _check_fit(given, text, asked, target)
        if asked.get("output") != "compressed":
            return target.write_parts(api.match(given, text, profile=profile, result="reader", **asked))
        graph = api.match(given, text, profile=profile, **asked).table
    target.write(graph)
    return int(graph.num_rows)


app.command()(progress)
app.command()(sql)


@app.command()
@takes(QUERY | {"memory": OUTPUT["memory"]})
def explain(
    text: str,
    asked: Mapping[str, Any],
    events: Annotated[list[str] | None, typer.Argument(metavar="EVENTS", help="Events whose columns the pattern is bound to.")] = None,
    timestamp_format: TimestampFormat = None,
    run: Annotated[bool, typer.Option("--run", help="Run it, and say what was expected and what came.")] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help=f"Draw the plan there: {', '.join(DRAWN)}.", rich_help_panel=ABOUT_OUTPUT),
    ] = None,
    pruning: Annotated[
        str | None, typer.Option("--waterfall", metavar="FILE", help=f"Run it, and draw what each stage let through: {', '.join(FORMATS)}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print how a pattern will be answered, or draw it; .png and .pdf need the extra 'plot'."""
    if out is not None:
        check_target(out, DRAWN)
    if pruning is not None:
        check_target(pruning, FORMATS)
    given = _events(events, asked, timestamp_format) if events else None
    explanation = api.explain(given, text, run=run or pruning is not None, **asked)
    if out is not None:
        _write_drawing(explanation, out)
    if pruning is not None:
        _draw_pruning(explanation, pruning)
    counts = None if explanation.counts is None else dict(explanation.counts)
    say(str(explanation), {"text": str(explanation), "counts": counts}, as_json=as_json)


@app.command()
@takes(QUERY)
def validate(
    text: str,
    asked: Mapping[str, Any],
    events: Annotated[list[str] | None, typer.Argument(metavar="EVENTS", help="Events to whose columns the pattern is bound.")] = None,
    rules: RulesFrom = None,
    timestamp_format: TimestampFormat = None,
    as_json: AsJson = False,
) -> None:
    """Check a pattern, or many, and with EVENTS also whether they fit their columns; nothing is run."""
    if rules is not None:
        validate_rules(events or (), rules, asked, timestamp_format, as_json=as_json)
        return
    try:
        check_query(_events(events, asked, timestamp_format) if events else None, text, asked)
    except DiagnosedError as error:
        if not as_json:
            raise
        print_line(json_of({"valid": False, "faults": [_fault(each) for each in error.diagnostics]}))
        raise typer.Exit(QUERY_FAULT) from None
    say("the pattern is valid", {"valid": True, "faults": []}, as_json=as_json)


@app.command()
@takes(QUERY | BOUNDS)
def plot(
    text: str,
    events: EventsArgument,
    out: Target,
    asked: Mapping[str, Any],
    timestamp_format: TimestampFormat = None,
    match: Annotated[int, typer.Option(metavar="N", help="Which match, in the order of results.")] = 0,
    margin: Margin = 0.25,
    as_json: AsJson = False,
) -> None:
    """Draw a match as a timeline: .png, .svg or .pdf (needs the extra 'plot')."""
    from gpu_cep.display.plotting import plot

    check_target(out, FORMATS)
    with watch("drawing"):
        _write_drawing(plot(_events(events, asked, timestamp_format), text, match=match, margin=margin, **asked), out)
    say(f"{out}: match {match:,}", {"out": out, "match": match}, as_json=as_json)


@app.command()
@takes(QUERY | BOUNDS | COLUMNS)
def report(
    text: str,
    events: EventsArgument,
    out: Target,
    asked: Mapping[str, Any],
    timestamp_format: TimestampFormat = None,
    rows: Annotated[int, typer.Option(min=0, metavar="N", help="How many matches the page holds at most.")] = 1_000,
    timelines: Annotated[int, typer.Option(min=0, metavar="N", help="Of how many it holds timelines (with the extra 'plot').")] = 20,
    margin: Margin = 0.25,
    as_json: AsJson = False,
) -> None:
    """Run a pattern, and report the run on one page of HTML: query, plan, pruning, matches and timelines."""
    from gpu_cep.display.reporting import report

    check_target(out, (".html",))
    with watch("reporting") as profile:
        given = _events(events, asked, timestamp_format)
        told = report(given, text, rows=rows, timelines=timelines, margin=margin, profile=profile, **asked)
    write_whole(out, lambda target: target.write(told.html.encode()))
    say(f"{out}: {len(told.html):,} characters", {"out": out, "counts": profile.counts}, as_json=as_json)


@app.command()
@takes(QUERY)
def bench(
    text: str,
    events: EventsArgument,
    asked: Mapping[str, Any],
    timestamp_format: TimestampFormat = None,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="How often each is done; the shortest counts.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Time a pattern on your own events, compared with reading and copying the columns that it reads."""
    from gpu_cep.cli.rates import measure

    with watch("measuring"):
        table = whole(_events(events, asked, timestamp_format))
        reading = None if PIPE in events else lambda: whole(_events(events, asked, timestamp_format))
        rates = measure(text, table, reading, runs, asked)
    if as_json:
        print_line(json_of(rates.facts()))
    else:
        _print_measurements(rates)


@app.command()
def gen(
    sample: Annotated[str, typer.Argument(metavar="SAMPLE", help=f"Which events: {', '.join(SAMPLES)}.")],
    out: Target,
    events: Annotated[int, typer.Option("--events", "-n", min=1, metavar="N", help="How many.")] = 100_000,
    keys: Annotated[int | None, typer.Option(min=1, metavar="N", help="Over how many streams they are spread.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same events.")] = 2026,
    pattern: Annotated[str | None, typer.Option(metavar="FILE", help="Where to write a query over them.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write sample events to try patterns on; the same options give the same events."""
    if sample not in SAMPLES:
        fail(f"there is no sample {sample!r}; there are {', '.join(SAMPLES)}", USAGE_FAULT)
    made = SAMPLES[sample]
    with report_faults():
        target = table_target(out)
        if pattern is not None:
            in_folder(pattern)
        chunks = made.chunks(events, keys or made.keys, seed)
        target.write(pa.concat_tables(show_count(chunks, sample, -(-events // CHUNK)), promote_options="default").unify_dictionaries())
        if pattern is not None:
            write_whole(pattern, lambda file: file.write(made.query.encode()))
        facts = {"out": out, "events": events, "about": made.about, "query": made.query}
        say(f"{out}: {events:,} events, {made.about}; to find in them:\n{made.query.rstrip()}", facts, as_json=as_json, aside=out == PIPE)


@app.command()
def warmup(
    cache: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where to keep them (default: $NUMBA_CACHE_DIR, or the user's folder for caches)."),
    ] = None,
    card: Annotated[
        str | None,
        typer.Option(metavar="CAPABILITY", help="Compute capability of the card, such as 9.0 (default: that of the one here, if any)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels ahead, also for a card, in as many processes as there are cores; queries find them on disk."""
    if cache is not None:
        # before anything imports numba, and for the processes that compile
        os.environ["NUMBA_CACHE_DIR"] = str(Path(cache).resolve())
    from gpu_cep.cli.warmup import card_named, card_to_serve, count_kernels, describe_cache, small_queries, warm_up

    with report_faults():
        chosen, served = small_queries(), card_to_serve() if card is None else card_named(card)
        for _ in show_count(warm_up(chosen, served), "compiling", len(chosen) + count_kernels(served)):
            pass
        found = describe_cache()
        say(f"{found.folder}: {found.kernels:,} compiled kernels, {found.bytes / 1e6:.1f} MB", asdict(found), as_json=as_json)


def _events(events: Sequence[str], asked: Mapping[str, Any], timestamp_format: str | None) -> Source | pa.Table:
    return events_from(events, asked.get("timestamp", "ts"), timestamp_format)


def _check_fit(events: Source | pa.Table, text: str, asked: Mapping[str, Any], target: TableTarget) -> None:
    """End the command by an error if the target cannot hold the result; nothing is matched for that."""
    from gpu_cep.engine.answers import answer_schema
    from gpu_cep.engine.output.row_patterns import row_pattern_schema

    if is_row_pattern(text):
        target.check(row_pattern_schema(bound_rows(events.schema, text, asked), events.schema))
        return
    plan, _, schema = _plan(events, text, asked)
    target.check(answer_schema(plan, schema))


def _view(events: Source | pa.Table, text: str, asked: Mapping[str, Any]) -> MatchView:
    """Return how the result is shown; raises as planning does."""
    from gpu_cep.display.match_view import view_matches

    plan, options, _ = _plan(events, text, asked)
    return view_matches(plan, as_query(text), options)


def _plan(events: Source | pa.Table, text: str, asked: Mapping[str, Any]) -> tuple[AnyPlan, Options, pa.Schema]:
    """Return the plan of a query over the events, with its options and the schema of the events."""
    from gpu_cep.engine.input.times import type_times

    options, given = read_keywords(asked)
    # rows of both kinds have the same columns
    settings = by_kind(given)[0] if given.timeouts else given
    held = type_times(events, as_query(text), options) if isinstance(events, pa.Table) else events
    return make_plan(text, held.schema, options, settings), options, held.schema


def _draw_pruning(explanation: Explanation | IntervalExplanation | RowPatternExplanation, target: str) -> None:
    from gpu_cep.display.plotting import waterfall

    _write_drawing(waterfall(explanation), target)


def _write_drawing(drawing: Drawing, name: str) -> None:
    """Render a drawing in the format of the file's suffix, and then write the file."""
    rendered = drawing.render(Path(name).suffix.lower())
    write_whole(name, lambda target: target.write(rendered))


def _fault(diagnostic: Any) -> dict[str, Any]:
    span = diagnostic.span
    place = {} if span is None else {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}
    return {"message": diagnostic.message, "hint": diagnostic.hint, **place}


def _print_measurements(rates: Measurements) -> None:
    counts = f"{count_of(rates.events, 'event')}, {count_of(rates.matches, 'match')}"
    print_line(f"{counts}, columns {', '.join(rates.columns)}, the best of {count_of(rates.runs, 'run')}")
    columns = {
        "what": [rate.what for rate in rates.rates],
        "seconds": [f"{rate.seconds:.4f}" for rate in rates.rates],
        "million events/s": [f"{rate.events_per_second / 1e6:.1f}" for rate in rates.rates],
        "times a copy": [f"{rate.copies:.1f}" for rate in rates.rates],
    }
    print_table(pa.table(columns))
