"""Say in words how the batches of a run were answered: what was chosen, expected and measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from gpu_cep.plan.costs import BatchAnswer, Estimate


def answer_lines(answers: Iterable[BatchAnswer], branches: int) -> Iterator[str]:
    """Yield lines about the answers of a run, grouped by branch, algorithm and order."""

    def kind(answer: BatchAnswer) -> tuple[int, str, str]:
        return answer.branch, answer.expected.algorithm, answer.expected.order

    for (branch, algorithm, order), found in groupby(sorted(answers, key=kind), kind):
        same = list(found)
        of_branch = f"branch {branch + 1}, " if branches > 1 else ""
        bound = f", bound in the order {order}" if order else ""
        yield f"{of_branch}{algorithm} in {_batches(len(same))} of {sum(each.events for each in same):,} events{bound}"
        yield f"  took      {_took_text(same)}"
        expected = [each.expected for each in same if each.expected.exact]
        if expected:
            yield f"  expected  {_expected_text(expected)}"
            yield from (f"  against   {line}" for line in _other_lines([other for each in same for other in each.others]))


def _took_text(answers: Sequence[BatchAnswer]) -> str:
    seconds = sum(answer.seconds for answer in answers)
    steps, matches = sum(answer.steps for answer in answers), sum(answer.matches for answer in answers)
    return f"{1e3 * seconds:,.1f} ms, {steps:,} steps, {matches:,} matches"


def _expected_text(estimates: Sequence[Estimate]) -> str:
    steps, matches = sum(each.steps for each in estimates), sum(each.matches for each in estimates)
    return f"{_milliseconds(estimates)}, {steps:,.0f} steps, {matches:,.0f} matches"


def _other_lines(estimates: list[Estimate]) -> Iterator[str]:
    """Yield the estimates of the algorithms that were not taken, cheapest first."""
    by_name = {name: [each for each in estimates if each.algorithm == name] for name in {each.algorithm for each in estimates}}
    for name, own in sorted(by_name.items(), key=lambda item: (sum(each.cost for each in item[1]) / len(item[1]), item[0])):
        at_least = "" if all(each.exact for each in own) else "at least "
        yield f"{name}: {at_least}{_milliseconds(own)}"


def _milliseconds(estimates: Sequence[Estimate]) -> str:
    return f"{sum(each.cost for each in estimates) / 1e6:,.1f} ms"


def _batches(number: int) -> str:
    return "one batch" if number == 1 else f"{number:,} batches"
