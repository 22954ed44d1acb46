"""The page that sets the GPU against the CPU: what cards' records say, what is known without a card, and what is not measured.

``python -m benchmarks.gpu.versus_cpu`` writes docs/gpu-versus-cpu.md from the records in benchmarks/results; ``make pages`` and
``make gpu-check`` run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.crossover import Turn
from benchmarks.gpu.end_to_end import EndToEnd
from benchmarks.gpu.first_queries import FirstAnswer
from benchmarks.gpu.records import CardRecord, newest_records
from benchmarks.gpu.traffic import Traffic, bytes_per_event, read_traffic
from benchmarks.record import pages
from benchmarks.record.folders import RESULTS, ROOT
from gpu_cep.engine.phase_one.engine_choice import FEWEST_EVENTS

PAGE = ROOT / "docs" / "gpu-versus-cpu.md"
NOT_YET = "not yet measured"
# Kernels that are named: those that take the most registers.
NAMED = 3

HEAD = """\
<!-- make pages writes this page from the records in benchmarks/results -->

# GPU against CPU

Where a card wins, from how many events on, what the transfer costs, and what stays on the CPU. Every figure on this page was measured,
or counted, by a command of the repository; where none was, the page says so. [On a GPU](gpu.md) says how to use a card."""

NO_CARD = f"""\
## On a card: {NOT_YET}

No record of a card is in `benchmarks/results`. On a machine with one,

```
make gpu-check GPU_CHECK_ARGS="--only crossover --minutes 20"
```

measures what is missing, writes a record, and fills in this page."""

READING = """\
Each question is asked at 10,000 events and tenfold sizes, and some at up to 100 million, as far as time and memory reach; a call is a
whole one, whose plan is remembered from the call before, and counts matches. Sizes between measured ones are interpolated."""

# What stays on the CPU, and why.
STAYS = {
    "reading files, encoding text": "kernels see codes of a dictionary, never text",
    "functions such as `exp`, and those of `functions=`": "they are computed on the host, so that both engines have the same bits",
    "automata, lazy chain": (
        "they search from event to event through candidate windows, which are few as a rule. A card follows runs of sequences under "
        "`skip_till_next_match`, alternatives one by one, and judges NOT between them, reads contiguous matches off labels and takes "
        "those that do not overlap, counts what labels decide under "
        '`skip_till_any_match`, and joins events for `algorithm="join_tree"`; '
        "it leaves windows to the CPU in which an event "
        f"leaves a choice. Whether a card pays there: {NOT_YET}"
    ),
    "windows of other patterns with several branches (OR, `?`, `*`), or with NOT elsewhere": (
        "the matchers look beyond candidate windows, so that all kept events come back before windows are laid"
    ),
    "ordering, where the events that are kept do not fit the card": "they are sorted in the host's memory",
    "`RETURN`, the result table": "Arrow's memory is the host's",
    f'fewer than {FEWEST_EVENTS:,} events, with `engine="auto"`': "no card is looked for",
    'plans that the CPU answers faster, with `engine="auto"`': "trials over the first events tell, and then the runs themselves",
}


def page(folder: Path) -> str:
    """Return the page from the records in `folder`."""
    traffic, cards = read_traffic(folder), newest_records(folder)
    measured = [part for card in cards for part in card_sections(traffic, card)] or [NO_CARD, READING, *tables(traffic, [], [])]
    return "\n\n".join([HEAD, *measured, *travel_section(traffic), *stays_section(), *kernel_section(folder)]) + "\n"


def card_sections(traffic: Sequence[Traffic], card: CardRecord) -> Iterator[str]:
    """Yield what one card's record says."""
    facts = card.facts
    where = f"{facts['processor']}, CUDA {facts['CUDA, driver']}, driver {facts['driver']}, commit {facts['commit']}"
    faults = f" The check found {card.faults} faults, which it names." if card.faults else ""
    yield f"## On {card.device}, {card.day}"
    yield f"{where}. The whole report is `benchmarks/results/{card.path.stem}.md`.{faults}"
    yield READING
    yield from tables(traffic, card.turns, card.calls)
    yield from first_section(card.first)


def first_section(first: Sequence[FirstAnswer]) -> Iterator[str]:
    """Yield what the first query of a kind takes, if that was measured."""
    if first:
        yield "### The first query"
        yield (
            "In a new process, with nothing compiled on disk: the wall time from the start of the process to the answer, over few events. "
            "`gpu-cep warmup` compiles beforehand."
        )
        shown = [answer.cells() for answer in first]
        yield pages.table([list(shown[0]), *(list(cells.values()) for cells in shown)])


def tables(traffic: Sequence[Traffic], turns: Sequence[Turn], calls: Sequence[EndToEnd]) -> Iterator[str]:
    """Yield where the GPU wins, how fast both are, and what the transfer costs; what is not there is not yet measured."""
    yield "### From how many events on the GPU wins"
    head = ["question", "from Arrow", "events on the card", "measured"]
    yield pages.table([head, *(turn_line(row.question, turns) for row in traffic)])
    yield "### Events per second"
    head = ["question", "events", "CPU", "threads", "GPU, from Arrow", "GPU, events on the card"]
    yield pages.table([head, *(line for row in traffic for line in rate_lines(row.question, calls))], figures=5)
    yield "### What the transfer costs"
    yield (
        "The share is that of the call's time, at the largest size, which the columns need at the speed of pinned memory, measured beside "
        "it; `more` is what a call from Arrow takes more than one with the events on the card."
    )
    head = ["question", "bytes per event to the card", "share of the call", "more, ns per event"]
    yield pages.table([head, *(transfer_line(row, calls) for row in traffic)], figures=3)


def turn_line(question: str, turns: Sequence[Turn]) -> list[str]:
    """Return the question's line among the turns."""
    found = next((turn for turn in turns if turn.question == question), None)
    if found is None:
        return [question, *[NOT_YET] * 3]
    # from where on `auto` takes the card is reckoned by the code of today, and was by that of the record's day
    return [question, *(found.cells()[head] for head in ("from Arrow", "events on the device", "measured"))]


def rate_lines(question: str, calls: Sequence[EndToEnd]) -> Iterator[list[str]]:
    """Yield a line for each size at which the question was measured."""
    own = of_question(question, calls)
    for call in own:
        rates = [f"{call.events / seconds / 1e6:,.1f} M/s" for seconds in (call.cpu, call.gpu, call.gpu_resident)]
        yield [question, f"{call.events:,}", rates[0], str(call.threads), *rates[1:]]
    if not own:
        yield [question, *[NOT_YET] * 5]


def transfer_line(row: Traffic, calls: Sequence[EndToEnd]) -> list[str]:
    """Return the question's line among the transfers."""
    known = [row.question, bytes_per_event(row)[0]]
    own = of_question(row.question, calls)
    if not own:
        return [*known, NOT_YET, NOT_YET]
    largest = own[-1]
    return [*known, f"{largest.transfer / largest.gpu:.0%}", f"{(largest.gpu - largest.gpu_resident) / largest.events * 1e9:,.2f}"]


def of_question(question: str, calls: Sequence[EndToEnd]) -> list[EndToEnd]:
    """Return the question's calls, the largest last."""
    return sorted((call for call in calls if call.workload == question), key=lambda call: call.events)


def travel_section(traffic: Sequence[Traffic]) -> Iterator[str]:
    """Yield what each question sends and gets back, and which of its stages run where."""
    yield "## What travels, and which stages run where"
    yield (
        f"Counted over {traffic[0].events:,} events on a device that the CPU plays, which needs no card: bytes of all copies, tables "
        "included (`python -m benchmarks.gpu.traffic`, `benchmarks/results/gpu-traffic.md`). Windows and streams are in "
        "`benchmarks/workloads/questions.py`."
    )
    head = ["question", "asks", "on the card", "then on the CPU", "bytes per event to the card", "and back"]
    yield pages.table([head, *map(_travel_line, traffic)], figures=2)


def _travel_line(row: Traffic) -> list[str]:
    stages = ", ".join(row.on_device), ", ".join((*row.on_cpu, "result"))
    return [row.question, row.about, *stages, *bytes_per_event(row)]


def stays_section() -> Iterator[str]:
    """Yield what the card does not do."""
    yield "## What stays on the CPU, and why"
    yield pages.table([["what", "why"], *map(list, STAYS.items())])
    yield "[What runs where](gpu.md#what-runs-where) has every step."


def kernel_section(folder: Path) -> Iterator[str]:
    """Yield what the compiler says of the kernels that run in parallel."""
    kernels = [kernel for kernel in pages.read(folder / "kernel-resources.json")["kernels"] if kernel["parallel"]]
    yield "## What the kernels take of a card"
    yield (
        "As the compiler tells, for one thread of a parallel kernel (`python -m benchmarks.gpu.kernel_resources`, "
        "`benchmarks/results/kernel-resources.md`). How many threads a card keeps busy with that, and how fast: " + NOT_YET + "."
    )
    head = ["architecture", "kernels by argument types", "registers, median", "the most", "taken by", "with a stack", "that spill"]
    lines = [_architecture_line(name, [kernel["resources"][name] | kernel for kernel in kernels]) for name in kernels[0]["resources"]]
    yield pages.table([head, *lines])


def _architecture_line(name: str, kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    registers = sorted(kernel["registers"] for kernel in kernels)
    by_registers = sorted(kernels, key=lambda kernel: -kernel["registers"])
    named = list(dict.fromkeys(f"`{kernel['kernel']}`" for kernel in by_registers))[:NAMED]
    stacked = sum(kernel["stack"] > 0 for kernel in kernels)
    spilling = sum(kernel["spill_stores"] + kernel["spill_loads"] > 0 for kernel in kernels)
    return [name, str(len(kernels)), str(registers[len(registers) // 2]), str(registers[-1]), ", ".join(named), str(stacked), str(spilling)]


def main() -> None:
    PAGE.write_text(page(RESULTS), encoding="utf-8")


if __name__ == "__main__":
    main()
