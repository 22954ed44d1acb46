"""Faults in what a card needs, which no card is needed to notice."""

from __future__ import annotations

from tests.mutants.fault import Fault

JOINS = "tests/engine/matchers/joins/test_device_joins.py"
WALKS = "tests/engine/phase_one/test_chain_walks.py"
RATES, TRIALS = "tests/engine/phase_one/test_engine_rates.py", "tests/engine/test_trials.py"
TILES = "tests/engine/phase_one/test_device_tiles.py"

DEVICE = (
    Fault(
        "streams-of-picked-events-begin-late",
        "gpu_cep/engine/phase_one/device/event_sources.py",
        "begins = np.flatnonzero(placed.streams[1:] != placed.streams[:-1]) + 1",
        "begins = np.flatnonzero(placed.streams[1:] != placed.streams[:-1]) + 2",
        ("tests/engine/phase_one/test_device_streams.py",),
    ),
    Fault(
        "windows-of-the-batch-before-are-forgotten",
        "gpu_cep/engine/phase_one/device/on_device.py",
        "held[: reached.size] |= reached",
        "held[: reached.size] |= held[: reached.size]",
        ("tests/engine/phase_one/test_device_batches.py",),
    ),
    Fault(
        "a-run-that-finds-events-never-rests",
        "kernels/gpu_cep_kernels/automaton/chain_runs.py",
        "elif event < until and (found == _NONE or steps >= task.limit):",
        "elif event < until and found == _NONE:",
        (WALKS,),
    ),
    Fault(
        "a-run-that-rested-forgets-its-last-event",
        "kernels/gpu_cep_kernels/automaton/chain_runs.py",
        "max(event, first_behind(events.after, last))",
        "event",
        (WALKS,),
    ),
    Fault(
        "of-equal-engines-the-gpu-is-taken",
        "gpu_cep/engine/phase_one/engine_choice.py",
        "min(self.ways, key=self._seconds)",
        "min(reversed(self.ways), key=self._seconds)",
        (RATES,),
    ),
    Fault(
        "a-gpu-that-failed-is-tried-again-at-once",
        "gpu_cep/engine/phase_one/engine_rates.py",
        "self.failure, self.tried, self.events = reason, True, 0",
        "self.failure = reason",
        (RATES,),
    ),
    Fault(
        "a-run-that-compiles-is-a-measurement",
        "gpu_cep/engine/phase_one/engine_rates.py",
        "elif known is None and begun:",
        "elif known is None:",
        (RATES,),
    ),
    Fault(
        "what-the-cpu-did-counts-for-the-gpu",
        "gpu_cep/engine/trials.py",
        "return seconds if first.device is choice.device else None",
        "return seconds",
        (TRIALS,),
    ),
    Fault(
        "trials-use-up-what-a-run-may-find",
        "gpu_cep/engine/trials.py",
        "replace(run.budget)",
        "run.budget",
        (TRIALS,),
    ),
    Fault(
        "matches-of-windows-left-to-the-cpu-come-last",
        "gpu_cep/engine/run.py",
        "return both.reorder(np.argsort(both.first, kind=\"stable\"))",
        "return both",
        (WALKS,),
    ),
    Fault(
        "windows-left-to-the-cpu-have-no-events",
        "gpu_cep/engine/phase_one/device/walked_matches.py",
        "        used |= covered_events(device.xp, starts, ends, int(used.size))",
        "        used[starts] = True",
        (WALKS,),
    ),
    Fault(
        "an-event-behind-a-window-stands-in-it",
        "gpu_cep/engine/phase_one/device/chain_walks.py",
        "before[1:-1] = xp.cumsum(held, dtype=np.int32)",
        "before[:-2] = xp.cumsum(held, dtype=np.int32)",
        (WALKS,),
    ),
    Fault(
        "times-go-back-to-the-device-that-has-them",
        "gpu_cep/engine/run.py",
        "_joining_device(run, first), first.times)",
        "_joining_device(run, first))",
        (JOINS,),
    ),
    Fault(
        "groups-behind-are-not-seen",
        "gpu_cep/engine/phase_one/device/tiles.py",
        "np.minimum.accumulate(firsts[..., :0:-1], axis=-1)[..., ::-1]",
        "firsts[..., 1:]",
        (TILES,),
    ),
    Fault(
        "counts-of-groups-are-not-carried",
        "gpu_cep/engine/phase_one/device/tiles.py",
        "np.cumsum(numbers, dtype=np.int64) - numbers",
        "np.cumsum(numbers, dtype=np.int64) * 0",
        (TILES,),
    ),
    Fault(
        "streams-in-order-are-sorted",
        "gpu_cep/engine/phase_one/device/kept_events.py",
        "other.least < self.greatest)",
        "other.least <= self.greatest)",
        (TILES,),
    ),
    Fault(
        "tiles-behind-are-not-seen",
        "kernels/gpu_cep_kernels/phase_one/window_tiles.py",
        "                first = min(first, own)",
        "                first = own",
        (TILES,),
    ),
    Fault(
        "tie-across-tiles-is-not-seen",
        "kernels/gpu_cep_kernels/phase_one/window_tiles.py",
        "or batch.times[event] != batch.times[event - 1]",
        "or event % TILE == 0 or batch.times[event] != batch.times[event - 1]",
        (TILES,),
    ),
    Fault(
        "falls-across-tiles-are-not-seen",
        "kernels/gpu_cep_kernels/phase_one/label_tiles.py",
        "summary[FALLS, t] | (summary[LEAST, t] < greatest)",
        "summary[FALLS, t]",
        (TILES,),
    ),
    Fault(
        "joins-on-a-device-take-another-batchs-streams",
        "gpu_cep/engine/matchers/joins/device_joins.py",
        "streams.offsets[first - 1 : last + 1] - batch.low",
        "streams.offsets[first - 1 : last + 1]",
        (JOINS,),
    ),
    Fault(
        "joins-that-are-left-to-the-cpu-count-twice",
        "gpu_cep/engine/matchers/joins/device_joins.py",
        "        meter.take_back()\n",
        "",
        (JOINS,),
    ),
    Fault(
        "failed-join-on-a-device-goes-on",
        "gpu_cep/engine/matchers/joins/execution.py",
        "                if pairing.may_fail:",
        "                if not pairing.may_fail:",
        (JOINS,),
    ),
    Fault(
        "illegal-address-is-survived",
        "kernels/gpu_cep_kernels/device/failures.py",
        "frozenset((214, 700, 702,",
        "frozenset((214, 702,",
        ("tests/kernels/device/test_failures.py",),
    ),
    Fault(
        "lost-device-is-opened-again",
        "kernels/gpu_cep_kernels/device/selection.py",
        "    _lost.append(reason)",
        "    del reason",
        ("tests/kernels/device/test_failures.py",),
    ),
    Fault(
        "check-goes-on-at-the-item-at-fault",
        "benchmarks/gpu/parts.py",
        "        done |= {lost}",
        "        done |= set()",
        ("tests/benchmarks/test_gpu_check.py::test_a_part_goes_on_behind_the_item_that_lost_the_device",),
    ),
    Fault(
        "parameter-that-cupy-lacks",
        "kernels/gpu_cep_kernels/device/primitives.py",
        'order = xp.argsort(keys[-1], kind="stable")',
        "order = xp.argsort(keys[-1], stable=True)",
        ("tests/kernels/device/test_array_names.py::test_cupys_functions_take_the_arguments",),
    ),
)
