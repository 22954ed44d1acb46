"""Faults in how a card searches windows, which no card is needed to notice."""

from __future__ import annotations

from tests.mutants.fault import Fault

_SEARCHES, _WALKS = "tests/engine/phase_one/test_window_searches.py", "tests/engine/phase_one/test_chain_walks.py"
_KERNEL, _DEVICE = "kernels/gpu_cep_kernels/automaton/window_searches.py", "gpu_cep/engine/phase_one/device/window_searches.py"

DEVICE_SEARCHES = (
    Fault(
        "a-robust-search-forgets-what-led-to-a-match",
        _KERNEL,
        "            path.led[depth] = 1\n",
        "",
        (_SEARCHES,),
    ),
    Fault(
        "a-search-looks-at-an-event-again",
        _KERNEL,
        "events.occurrence[v, event + 1]",
        "events.occurrence[v, event]",
        (_SEARCHES,),
    ),
    Fault(
        "a-variable-of-a-set-blocks-none-behind-it",
        _KERNEL,
        "path.blockers[v] += pattern.precedes[u, v]",
        "path.blockers[v] += 0 * pattern.precedes[u, v]",
        (_SEARCHES,),
    ),
    Fault(
        "a-search-that-takes-many-steps-has-ended",
        _KERNEL,
        "status = Status.STEPS_SPENT",
        "status = Status.FINISHED",
        (_WALKS,),
    ),
    Fault(
        "a-search-takes-the-longest-runs-as-no-matches",
        _KERNEL,
        "status = Status.PATH_FULL",
        "phase = DONE",
        (_SEARCHES,),
    ),
    Fault(
        "a-start-ends-with-the-match-that-is-found-last",
        _KERNEL,
        "last = min(last, int(path.event[depth - 1]))",
        "last = int(path.event[depth - 1])",
        (_SEARCHES,),
    ),
    Fault(
        "a-start-ends-with-the-match-that-is-found-first",
        _KERNEL,
        "last = min(last, int(path.event[depth - 1]))",
        "last = int(path.event[depth - 1]) if last == end else last",
        (_SEARCHES,),
    ),
    Fault(
        "matches-are-written-over-those-of-the-window-before",
        "gpu_cep/engine/phase_one/device/held_windows.py",
        "places[found] = ends - sizes",
        "places[found] = ends - 1",
        (_SEARCHES,),
    ),
    Fault(
        "a-start-has-one-match",
        _DEVICE,
        "return self.numbers[SearchNumber.MATCHES][self.found].astype(np.int64)",
        "return (self.numbers[SearchNumber.MATCHES][self.found] != 0).astype(np.int64)",
        (_SEARCHES,),
    ),
    Fault(
        "matches-of-a-start-come-back-as-they-are-found",
        "gpu_cep/engine/phase_one/device/walked_matches.py",
        "found.append(there.sort_within_starts())",
        "found.append(there)",
        (_SEARCHES,),
    ),
    Fault(
        "a-branch-that-leaves-windows-is-counted",
        "gpu_cep/engine/phase_one/device/kept_counts.py",
        "            if counted.left.size:\n                return False\n",
        "",
        (_SEARCHES,),
    ),
    Fault(
        "kept-matches-of-branches-overlap",
        "gpu_cep/engine/phase_one/device/kept_counts.py",
        "if keeps_disjoint(branches[0][0].plan) else first",
        "if keeps_disjoint(branches[0][0].plan) and len(branches) == 1 else first",
        (_SEARCHES,),
    ),
    Fault(
        "matches-that-were-not-counted-stay-in-the-budget",
        "gpu_cep/engine/phase_one/device/walked_matches.py",
        "    if first is None:\n        walk.meter.take_back()\n",
        "    if first is None:\n",
        (_SEARCHES,),
    ),
    Fault(
        "counts-of-the-card-are-counted-again",
        "gpu_cep/engine/adaptive/choice.py",
        "return (starts is None or starts.are_all) and are_all_own",
        "return are_all_own",
        (_SEARCHES,),
    ),
    Fault(
        "steps-of-windows-that-are-left-count-twice",
        _DEVICE,
        "numbers[SearchNumber.STEPS] * ended",
        "numbers[SearchNumber.STEPS]",
        (_SEARCHES,),
    ),
    Fault(
        "steps-of-walks-that-are-left-count-twice",
        "gpu_cep/engine/phase_one/device/chain_walks.py",
        "numbers[RunNumber.STEPS] * finished",
        "numbers[RunNumber.STEPS]",
        (_SEARCHES,),
    ),
    Fault(
        "many-windows-have-room-for-no-paths",
        "gpu_cep/engine/phase_one/device/batch_walks.py",
        "FIXED + walk.run.device.slots(_LARGE) * slot, window",
        "FIXED, window",
        (_SEARCHES,),
    ),
    Fault(
        "walks-that-judge-negations-need-no-paths",
        "gpu_cep/engine/phase_one/device/chain_walks.py",
        "slotted = bool(negations) or _walk_of",
        "slotted = _walk_of",
        (_SEARCHES,),
    ),
    Fault(
        "what-takes-many-steps-is-searched-once",
        _DEVICE,
        "for limit in STEP_LIMITS:",
        "for limit in STEP_LIMITS[:1]:",
        (_SEARCHES,),
    ),
    Fault(
        "a-condition-at-the-end-is-not-judged",
        "gpu_cep/engine/lowering/pattern_tables.py",
        "return not branch.negations and not conditions.final.size and",
        "return not branch.negations and",
        (_WALKS,),
    ),
    Fault(
        "negations-are-not-judged-where-windows-are-searched",
        "gpu_cep/engine/lowering/pattern_tables.py",
        "return not branch.negations and not conditions.final.size and",
        "return not conditions.final.size and",
        (_WALKS,),
    ),
)
