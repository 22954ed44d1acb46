"""Patterns of more variables than a label word has bits, on a device, against the oracle."""

from __future__ import annotations

from unittest.mock import patch

import gpu_cep
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from tests.conformance.many_variables import ANY, CASES, NEXT
from tests.effort import every_pair
from tests.results import matches_of


class Cramped(DeviceMemory):
    """Chunks of a few rows, and no room to keep them."""

    kept_events = 3

    def chunk_rows(self, labelling):
        return 7


@every_pair(
    name=[*CASES],
    strategy=[NEXT, ANY],
    memory=[DeviceMemory(1 << 24, 16), Cramped(1 << 24, 16)],
    prune=[True, False, ["filter", "chain"]],
    output=["indices", "count"],
)
def test_same_matches_in_the_same_order(name, strategy, memory, prune, output):
    case = CASES[name]
    wanted = case.matches(strategy)
    with patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", lambda device, plan: memory):
        found = gpu_cep.match(case.events, case.text, strategy=strategy, engine="gpu", output=output, prune=prune)
    if output == "count":
        assert found["count"].to_pylist() == [len(wanted)]
    else:
        assert matches_of(found) == wanted
