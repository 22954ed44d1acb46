"""Faults in what a card does of MATCH_RECOGNIZE."""

from __future__ import annotations

from tests.mutants.fault import Fault

_FOUND = ("tests/engine/row_patterns/test_device_matches.py",)
_REACH, _MATCHES = (f"kernels/gpu_cep_kernels/row_patterns/{name}.py" for name in ("reach", "matches"))
_DEVICE = "gpu_cep/engine/row_patterns/device_matches.py"

DEVICE_ROWS = (
    Fault(
        "what-is-behind-a-piece-is-before-itself",
        _REACH,
        "may |= _lookup(np.uint64(behind[p]), before)",
        "may |= behind[p]",
        _FOUND,
    ),
    Fault(
        "reach-behind-the-next-piece-is-lost",
        _REACH,
        "word |= np.uint64(crossed[p, lowest_bit(later)])",
        "word |= np.uint64(0)",
        _FOUND,
    ),
    Fault(
        "reach-through-a-piece-is-that-of-its-last-row",
        _REACH,
        "r = -1 if same else r - 1\n        crossed[p, q]",
        "r = -1\n        crossed[p, q]",
        _FOUND,
    ),
    Fault(
        "matches-end-behind-the-next-piece-at-the-latest",
        _MATCHES,
        "end if end >= 0 else ends[p, -1 - end]",
        "end if end >= 0 else pieces.offsets[p + 1]",
        _FOUND,
    ),
    Fault(
        "a-match-without-rows-hides-the-next-one",
        _DEVICE,
        "xp.maximum(lengths, 1) - 1",
        "xp.maximum(lengths, 1)",
        _FOUND,
    ),
    Fault(
        "matches-that-overlap-are-taken-on-a-card",
        _DEVICE,
        "if to != SkipTo.NEXT_ROW and firsts.size:",
        "if False:",
        _FOUND,
    ),
    Fault(
        "a-card-has-room-for-any-rows",
        "gpu_cep/engine/phase_one/device/card_memory.py",
        "return taken + rows * self.label <= self._beside(0)",
        "return True",
        _FOUND,
    ),
    Fault(
        "ends-in-windows-are-those-of-one-piece",
        _REACH,
        "behind[p - 1, first] = min(behind[p - 1, first], end)",
        "behind[p - 1, first] = min(behind[p - 1, first], NEVER)",
        _FOUND,
    ),
    Fault(
        "the-first-window-of-a-piece-ends-late",
        _REACH,
        "while not sought and last + step <= end and _in_window(r, last + step - 1, times",
        "while not sought and last + step <= end and _in_window(r, last, times",
        _FOUND,
    ),
    Fault(
        "a-match-that-is-too-long-has-no-rows",
        _MATCHES,
        "state, length = ACCEPT, UNENDED",
        "state, length = ACCEPT, UNMATCHED",
        _FOUND,
    ),
    Fault(
        "windows-of-matches-on-a-card-end-with-partitions",
        _MATCHES,
        "limit, row, first, last = limit_of(start, pieces.ends[p], reach), start, -1, -1",
        "limit, row, first, last = pieces.ends[p] - 1, start, -1, -1",
        _FOUND,
    ),
    Fault(
        "a-card-goes-on-where-the-search-may-not",
        _DEVICE,
        "None if any_set(targets <= firsts) else",
        "None if any_set(targets < firsts) else",
        _FOUND,
    ),
    Fault(
        "rows-to-skip-to-are-those-behind-the-last-row",
        _DEVICE,
        "given = search.held, search.automaton, reach, to, most_steps",
        "given = search.held, search.automaton, reach, 0, most_steps",
        _FOUND,
    ),
    Fault(
        "a-card-follows-every-match-though-the-cpu-does-not",
        _DEVICE,
        "if to in _FEW_FOLLOWED and longer.size * _MOST_STEPS",
        "if to not in _FEW_FOLLOWED and longer.size * _MOST_STEPS",
        _FOUND,
    ),
    Fault(
        "states-stand-at-borders-of-whole-partitions",
        "gpu_cep/engine/row_patterns/pieces.py",
        "numbers = np.flatnonzero((pieces.offsets[:-1] > pieces.begins) | (pieces.offsets[1:] < pieces.ends))",
        "numbers = np.arange(len(pieces.begins))",
        _FOUND,
    ),
)
