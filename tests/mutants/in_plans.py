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
        "first-gap-without-relations",
        "gpu_cep/analysis/gaps.py",
        "all(other == number or mask >> other & 1 for other in each.variables)",
        "all(other == number for other in each.variables)",
        ("tests/conformance/test_gaps.py",),
    ),
    Fault(
        "first-gap-reads-what-follows",
        "gpu_cep/analysis/gaps.py",
        "if number in each.variables and all(other == number or mask >> other & 1 for other in each.variables)",
        "if number in each.variables",
        ("tests/conformance/test_gaps.py",),
    ),
    Fault(
        "first-gap-without-types",
        "gpu_cep/analysis/gaps.py",
        "if each.kind is ConditionKind.PROPERTY and number in added",
        "if False",
        ("tests/conformance/test_gaps.py",),
    ),
    Fault(
        "next-gap-dropped-where-closed",
        "gpu_cep/analysis/contiguity.py",
        "each.variable not in gaps or (each.after and each.before)",
        "each.variable not in gaps or not each.after",
        ("tests/conformance/test_next.py",),
    ),
    Fault(
        "next-open-gap-kept",
        "gpu_cep/analysis/contiguity.py",
        "each.variable not in gaps or (each.after and each.before)",
        "True",
        ("tests/analysis/test_contiguity.py", "tests/conformance/test_next.py"),
    ),
    Fault(
        "next-gap-moves-with-any-variable",
        "gpu_cep/analysis/contiguity.py",
        "and not any(after >> w & 1 and before[w] >> v & 1 for w in before)",
        "",
        ("tests/analysis/test_contiguity.py",),
    ),
    Fault(
        "next-names-a-variable-of-the-query",
        "gpu_cep/analysis/contiguity.py",
        "if each not in query.taken and each not in query.gaps)",
        "if each not in query.gaps)",
        ("tests/analysis/test_contiguity.py",),
    ),
    Fault(
        "next-binds-the-hidden-variable",
        "gpu_cep/analysis/scope.py",
        "if name in self.names and name not in self.hidden:",
        "if name in self.names:",
        ("tests/analysis/test_contiguity.py",),
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
