"""Faults in MATCH_RECOGNIZE."""

from __future__ import annotations

from tests.mutants.fault import Fault

_LANG = ("tests/lang/test_row_patterns.py",)
_RULES = ("tests/analysis/test_row_patterns.py",)
_ORACLE = ("tests/oracle/test_row_patterns.py",)

ROW_PATTERNS = (
    Fault(
        "reluctant-is-greedy",
        "gpu_cep/lang/row_patterns/translation.py",
        "reluctant is None or minimum == maximum",
        "True",
        _LANG,
    ),
    Fault(
        "names-do-not-fold",
        "gpu_cep/lang/row_patterns/names.py",
        "else identifier.upper()",
        "else identifier",
        _LANG,
    ),
    Fault(
        "final-in-define",
        "gpu_cep/analysis/row_patterns/rules.py",
        'if node.semantics == "FINAL" and clause == "DEFINE":',
        'if node.semantics == "FINAL" and clause == "MEASURES":',
        _RULES,
    ),
    Fault(
        "mixed-variables",
        "gpu_cep/analysis/row_patterns/rules.py",
        "if len(names) > 1:",
        "if len(names) > 2:",
        _RULES,
    ),
    Fault(
        "subset-of-a-subset",
        "gpu_cep/analysis/row_patterns/variables.py",
        "    if folded(member) in subsets:\n",
        "    if False:\n",
        _RULES,
    ),
    Fault(
        "running-sees-the-whole-match",
        "gpu_cep/oracle/row_patterns/places.py",
        'if semantics == "FINAL" else',
        "if True else",
        _ORACLE,
    ),
    Fault(
        "last-iteration-of-no-row",
        "gpu_cep/oracle/row_patterns/preference.py",
        "                yield after\n            else:",
        "                continue\n            else:",
        _ORACLE,
    ),
    Fault(
        "alternatives-backwards",
        "gpu_cep/oracle/row_patterns/preference.py",
        "for element in node.elements:",
        "for element in node.elements[::-1]:",
        _ORACLE,
    ),
    Fault(
        "matched-rows-are-unmatched",
        "gpu_cep/oracle/row_patterns/answers.py",
        " and start > matched:",
        ":",
        _ORACLE,
    ),
    Fault(
        "nulls-first",
        "gpu_cep/oracle/row_patterns/rows.py",
        "is None) != bool(key.nulls_first)",
        "is None) == bool(key.nulls_first)",
        _ORACLE,
    ),
)
