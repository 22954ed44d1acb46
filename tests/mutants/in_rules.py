"""Faults in scalar rules."""

from __future__ import annotations

from tests.mutants.fault import AUTOMATON, CONFORMANCE, Fault

RULES = (
    Fault(
        "nan-is-greater-or-equal",
        "kernels/gpu_cep_kernels/rules/scalars.py",
        "    return left >= right\n",
        "    return not left < right\n",
        ("tests/kernels/compile/test_scalars.py", "tests/kernels/rules/test_expressions.py"),
    ),
    Fault(
        "window-end-is-open",
        "kernels/gpu_cep_kernels/rules/scalars.py",
        "(last - first <= length)",
        "(last - first < length)",
        (AUTOMATON, CONFORMANCE),
    ),
    Fault(
        "ties-follow-one-another",
        "kernels/gpu_cep_kernels/rules/ties.py",
        "int(after[event]) if after.size else event + 1",
        "event + 1",
        (AUTOMATON, CONFORMANCE),
    ),
    Fault(
        "negative-zero-in-another-bucket",
        "kernels/gpu_cep_kernels/rules/scalars.py",
        "(np.uint64(0) if bits == MINIMUM_INT else np.uint64(bits))",
        "np.uint64(bits)",
        ("tests/kernels/matches/test_hashing.py",),
    ),
    Fault(
        "negation-border-ignores-ties",
        "kernels/gpu_cep_kernels/rules/negation.py",
        "is_before(one, other, negations.times.size > 0, negations.times)",
        "is_before(one, other, False, negations.times)",
        (AUTOMATON, CONFORMANCE),
    ),
    Fault(
        "negation-reaches-the-next-stream",
        "kernels/gpu_cep_kernels/rules/negation.py",
        "    if place >= negations.streams[stream + 1]:\n",
        "    if place > negations.streams[stream + 1]:\n",
        (CONFORMANCE,),
    ),
    Fault(
        "cut-at-the-last-event-itself",
        "kernels/gpu_cep_kernels/rules/cut.py",
        "return last > other_last and first <= other_first",
        "return last >= other_last and first <= other_first",
        ("tests/engine/matchers/test_overlap.py::test_of_matches_with_one_end_the_first_start_is_taken",),
    ),
    Fault(
        "cut-by-the-first-of-several",
        "kernels/gpu_cep_kernels/rules/cut.py",
        "    if cut.state[CutState.HELD] == limit:\n",
        "    if cut.state[CutState.HELD] > 0:\n",
        ("tests/kernels/automaton/test_enumeration.py",),
    ),
    Fault(
        "held-matches-by-last-event-only",
        "kernels/gpu_cep_kernels/rules/cut.py",
        "order = order if order != 0 else cut.counts[m, v] - cut.counts[n, v]",
        "order = 0",
        ("tests/kernels/automaton/test_enumeration.py",),
    ),
    Fault(
        "running-sum-wraps-around",
        "kernels/gpu_cep_kernels/rules/running.py",
        "count = SUM_OVERFLOWED if wrapped else count + 1",
        "count = count + 1",
        ("tests/kernels/rules/test_running.py",),
    ),
    Fault(
        "running-minimum-skips-nan",
        "kernels/gpu_cep_kernels/rules/running.py",
        "if current != current or value != value:",
        "if current != current and value != value:",
        ("tests/kernels/rules/test_running.py",),
    ),
)
