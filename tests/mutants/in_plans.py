"""Faults in queries and their plans."""

from __future__ import annotations

from tests.mutants.fault import CONFORMANCE, Fault

ANALYSIS = (
    Fault(
        "derived-columns-of-two-events",
        "gpu_cep/plan/derived_columns.py",
        "return found[0] if len(alike) == 1 else None",
        "return found[0] if found else None",
        ("tests/plan/test_derived_columns.py", CONFORMANCE),
    ),
    Fault(
        "derived-columns-null-by-the-last",
        "gpu_cep/engine/lowering/column_programs.py",
        "nulls = own if nulls is None else nulls | own",
        "nulls = own",
        ("tests/plan/test_derived_columns.py", CONFORMANCE),
    ),
    Fault(
        "dnf-left-out-forgotten",
        "gpu_cep/analysis/normalize.py",
        "yield _Disjunct(left_out=disjunct.present)",
        "yield _Disjunct()",
        ("tests/analysis/test_normalize.py", "tests/oracle", CONFORMANCE),
    ),
    Fault(
        "dnf-order-not-closed",
        "gpu_cep/analysis/normalize.py",
        "mask | before[middle] if mask >> middle & 1 else mask",
        "mask",
        ("tests/analysis/test_normalize.py", CONFORMANCE),
    ),
    Fault(
        "states-one-more-than-maximum",
        "gpu_cep/plan/states.py",
        "most is not None and counts[v] >= most",
        "most is not None and counts[v] > most",
        ("tests/plan/test_states.py", "tests/conformance/test_compressed.py", CONFORMANCE),
    ),
    Fault(
        "states-ignore-ties",
        "gpu_cep/plan/states.py",
        "self.before[v] & (unsatisfied | tied)",
        "self.before[v] & unsatisfied",
        ("tests/plan/test_states.py", "tests/engine/windows/test_state_counts.py", "tests/conformance/test_compressed.py"),
    ),
    Fault(
        "robust-rule-forgets-negations",
        "gpu_cep/plan/robustness.py",
        "return not branch.negations and ordered and all(",
        "return ordered and all(",
        ("tests/plan/test_robustness.py", CONFORMANCE),
    ),
    Fault(
        "robust-rule-forgets-ties",
        "gpu_cep/plan/robustness.py",
        'ordered = query.ties == "position" or not any(',
        "ordered = True or not any(",
        ("tests/plan/test_robustness.py", CONFORMANCE),
    ),
)
