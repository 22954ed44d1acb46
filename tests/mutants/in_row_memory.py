"""Faults in what a search of row patterns remembers: the dead ends, and the values by which they are told apart."""

from __future__ import annotations

from tests.mutants.fault import Fault

_ENGINE = tuple(f"tests/engine/row_patterns/test_{name}.py" for name in ("answers", "examples", "walks", "work"))

ROW_MEMORY = (
    Fault(
        "dead-ends-of-other-totals",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "i, reads = mapped.covered[t], memo.reads_total[q, t]",
        "i, reads = mapped.covered[t], False",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-other-rows",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "if memo.reads_place[q, k] else np.int64(0)",
        "if False else np.int64(0)",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-other-variables",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "return bank.ints[table.classifier, row] if here.start <= row <= here.row else -1",
        "return 0 if here.start <= row <= here.row else -1",
        _ENGINE,
    ),
    Fault(
        "dead-ends-without-the-rows-that-lead-back",
        "gpu_cep/engine/row_patterns/dead_ends.py",
        "ahead + max(0, -place.distance) if place.inside else 0",
        "ahead if place.inside else 0",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-other-windows",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "here.start if windows else -1",
        "-1",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-null-and-zero",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "bits = np.int64(missing)",
        "bits = np.int64(0)",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-the-first-column",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "at = memo.column_first[k] + (i >> 1)",
        "at = memo.column_first[k]",
        _ENGINE,
    ),
    Fault(
        "dead-ends-without-the-rows-between",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "at_distance(led, distance, here)",
        "led",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-another-count",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "(count if memo.counts[t] else min(count, 1))",
        "min(count, 1)",
        _ENGINE,
    ),
    Fault(
        "growing-forgets",
        "gpu_cep/engine/row_patterns/dead_ends.py",
        "    keep_dead_ends(memo.keys, start, larger)\n",
        "",
        _ENGINE,
    ),
    Fault(
        "ways-part-at-the-first-row-alone",
        "gpu_cep/engine/row_patterns/dead_ends.py",
        "choices = (automaton.starts_first, automaton.starts_later, *automaton.moves)",
        "choices = (automaton.starts_first, automaton.starts_later)",
        ("tests/engine/row_patterns/test_dead_ends.py",),
    ),
    Fault(
        "values-taken-back-count-as-known",
        "kernels/gpu_cep_kernels/row_patterns/conditions.py",
        "if at >= before or mapped.codes[t, at] != code:",
        "if mapped.codes[t, at] != code:",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-other-values",
        "kernels/gpu_cep_kernels/row_patterns/conditions.py",
        "return np.uint64(mixed).view(np.int64)",
        "return np.int64(0)",
        _ENGINE,
    ),
    Fault(
        "dead-ends-are-forgotten",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "known = known or _agrees(at, memo)",
        "known = False",
        ("tests/engine/row_patterns/test_work.py",),
    ),
)
