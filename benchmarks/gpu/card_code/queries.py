"""Ask random queries on this CPU by the code that numba-cuda generates for a card, and compare the matches with the CPU engine's.

``python -m benchmarks.gpu.card_code.queries [--minutes N] [--first ROUND]`` prints how many queries of each kind agreed, and how often each
kernel was launched, and exits with 1 if one differs. A kernel that reads or writes outside of its arrays ends the process.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
from unittest.mock import patch

from benchmarks.gpu.card_code.device import CardCodeDevice
from benchmarks.gpu.conformance import random_cases
from benchmarks.gpu.device_code import missing_wheels
from benchmarks.gpu.findings import Deadline
from benchmarks.record.pages import table


def main() -> int:
    """Print the tables, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="time for all kinds together")
    parser.add_argument("--first", type=int, default=0, metavar="ROUND", help="the round to begin with: each has cases of its own")
    options = parser.parse_args()
    if missing := missing_wheels():
        print(f"not installed: {', '.join(missing)}")
        return 2
    import cupy

    faulthandler.enable()
    device = CardCodeDevice(cupy, options.first)
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: device):
        found = random_cases(options.first, 1, Deadline.after(60 * options.minutes), False)
    rows = [[kind, f"{said.total():,}", f"{said['matched']:,}", f"{said['refused']:,}"] for kind, said in found.said.items()]
    print(table([["cases", "agreed", "with matches", "errors on both"], *rows], figures=3))
    print()
    print(table([["kernel", "launches"], *([f"`{name}`", f"{count:,}"] for name, count in sorted(device.launches.items()))], figures=1))
    print(*(f"\n{fault.text}" for fault in found.faults), sep="\n")
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
