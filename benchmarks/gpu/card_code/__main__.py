"""Run each kernel case on this CPU by the code that numba-cuda generates for a card, and compare it with the CPU form.

``python -m benchmarks.gpu.card_code [KERNEL …]`` prints a table of kernels (all, or those named), and exits with 1 if one of them differs.
Each launch runs the lanes of a small grid in random order, with spoilt scratch, and with each array beside memory without access: once
before it, once after it. The code is compiled twice, instruction by instruction and optimised.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator, Sequence

from benchmarks.gpu.card_code.apart import Running, begin
from benchmarks.gpu.card_code.cases import alike, compare
from benchmarks.gpu.card_code.launch import generated
from benchmarks.gpu.device_code import arguments_of, missing_wheels
from benchmarks.record.pages import table
from gpu_cep_kernels.compile.launch import available_threads
from tests.kernel_cases import KernelCase

Group = Sequence[KernelCase]


def outcomes(groups: Sequence[Group]) -> Iterator[tuple[Group, int | Exception]]:
    """Yield how many launches of each group of cases agreed, or why one did not; groups run in processes beside this one."""
    running = deque[tuple[Group, Running]]()
    for group in groups:
        if len(running) >= available_threads():
            ended, call = running.popleft()
            yield ended, call.outcome()
        running.append((group, begin(compare, group, generated(group[0].kernel, arguments_of(group[0])))))
    for ended, call in running:
        yield ended, call.outcome()


def main() -> int:
    """Print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="these instead of all")
    named = parser.parse_args().kernels
    if missing := missing_wheels():
        print(f"not installed: {', '.join(missing)}")
        return 2
    groups = [group for group in alike() if not named or group[0].kernel.__name__ in named]
    if absent := set(named) - {group[0].kernel.__name__ for group in groups}:
        parser.error(f"no kernel has cases: {', '.join(sorted(absent))}")
    agreed, faults, forms = dict[str, int](), list[str](), dict[str, int]()
    for group, outcome in outcomes(groups):
        name = group[0].kernel.__name__
        forms[name] = forms.get(name, 0) + 1
        if isinstance(outcome, Exception):
            faults.append(f"{group[0].name}: {type(outcome).__name__}: {outcome}")
            print(faults[-1], flush=True)
        else:
            agreed[name] = agreed.get(name, 0) + outcome
    rows = [[f"`{name}`", str(count), f"{agreed.get(name, 0):,}"] for name, count in sorted(forms.items())]
    print("\n".join(table([["kernel", "forms", "launches that agree"], *rows], figures=2).splitlines()))
    print(f"\n{len(forms)} kernels, {sum(forms.values())} forms, {sum(agreed.values()):,} launches agree, {len(faults)} forms do not.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
