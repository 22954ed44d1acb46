"""Faults in MATCH_RECOGNIZE."""

from __future__ import annotations

from tests.mutants.fault import Fault

_LANG = ("tests/lang/test_row_patterns.py",)
_RULES = ("tests/analysis/test_row_patterns.py",)
_ORACLE = ("tests/oracle/test_row_patterns.py",)
_ENGINE = tuple(f"tests/engine/row_patterns/test_{name}.py" for name in ("answers", "examples", "work"))

_SPARK = ("tests/spark/test_row_patterns.py",)

_SQL = ("tests/api/test_sql.py",)

ROW_PATTERNS = (
    Fault(
        "a-clause-in-a-text",
        "gpu_cep/sql_statements.py",
        "    except TokenError:\n        return False",
        "    except TokenError:\n        return True",
        _SQL,
    ),
    Fault(
        "with-lists-what-has-not-ended",
        "gpu_cep/sql_statements.py",
        "[each for each in queries if each[1] < place]",
        "queries",
        _SQL,
    ),
    Fault(
        "places-in-the-clause-alone",
        "gpu_cep/sql_statements.py",
        "blank + text[begin : ends[begin]]",
        "text[begin : ends[begin]]",
        _SQL,
    ),
    Fault(
        "braces-of-a-statement-are-names",
        "spark_glue/gpu_cep_spark/statements.py",
        """text.replace("{", "{{").replace("}", "}}")""",
        "text",
        ("tests/spark/test_statements.py",),
    ),
    Fault(
        "rows-alike-stay-as-spark-had-them",
        "spark_glue/gpu_cep_spark/row_worker.py",
        "for column, order in (*keys, *sorting, *ties)]",
        "for column, order in (*keys, *sorting)]",
        _SPARK,
    ),
    Fault(
        "rows-spilled-by-one-key",
        "spark_glue/gpu_cep_spark/row_worker.py",
        "columns), keys)",
        "columns), range(len(rows.schema)))",
        _SPARK,
    ),
    Fault(
        "columns-of-order-by-are-not-sent",
        "gpu_cep/plan/columns_read.py",
        "*bound.returned_columns, *(each.column for each in bound.order_by)}",
        "*bound.returned_columns}",
        _SPARK,
    ),
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
    Fault(
        "iterations-of-no-row-go-on",
        "gpu_cep/plan/row_patterns/translation.py",
        "nothing = then.after(taken) if optional else more.after(taken)",
        "nothing = more.after(taken)",
        _ENGINE,
    ),
    Fault(
        "permutations-share-what-they-must-not",
        "gpu_cep/plan/row_patterns/translation.py",
        "if all(map(_has_one_way, node.elements)):",
        "if True:",
        _ENGINE,
    ),
    Fault(
        "anchors-hold-anywhere",
        "gpu_cep/plan/row_patterns/automaton.py",
        'if at_first if sign == "^" else at_end:',
        "if True:",
        _ENGINE,
    ),
    Fault(
        "neighbours-of-other-partitions",
        "gpu_cep/engine/row_patterns/labels.py",
        "        if distance:\n            mask_borders",
        "        if False:\n            mask_borders",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-other-totals",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "if same and memo.reads_total[q, t]:",
        "if False:",
        _ENGINE,
    ),
    Fault(
        "dead-ends-of-other-rows",
        "kernels/gpu_cep_kernels/row_patterns/memo.py",
        "if same and memo.reads_place[q, k]:",
        "if False:",
        _ENGINE,
    ),
    Fault(
        "the-row-before-the-last",
        "kernels/gpu_cep_kernels/row_patterns/conditions.py",
        "else count - 1 - offset",
        "else count - 2 - offset",
        _ENGINE,
    ),
    Fault(
        "a-window-in-the-wrong-place",
        "kernels/gpu_cep_kernels/row_patterns/tables.py",
        "reach.earliest[row, q] <= limit",
        "reach.earliest[row, q] <= limit + 1",
        _ENGINE,
    ),
    Fault(
        "rows-of-no-match-are-NULL",
        "gpu_cep/plan/row_patterns/places.py",
        "if isinstance(moved, Field) or _is_strict(moved):",
        "if True:",
        _ENGINE,
    ),
    Fault(
        "unmatched-rows-inside-matches",
        "gpu_cep/engine/row_patterns/shown.py",
        "np.cumsum(opened)[:length] > 0",
        "np.cumsum(opened)[:length] > 1",
        _ENGINE,
    ),
    Fault(
        "the-last-shared-row-is-the-first",
        "kernels/gpu_cep_kernels/row_patterns/matches.py",
        "final = r if final < 0 else final",
        "final = r",
        _ENGINE,
    ),
    Fault(
        "shared-rows-are-followed-again",
        "kernels/gpu_cep_kernels/row_patterns/matches.py",
        "stop = trail.end[row] if trail.state[row] == state else -1",
        "stop = -1",
        ("tests/engine/row_patterns/test_work.py",),
    ),
    Fault(
        "a-piece-is-mended-to-its-first-row-alone",
        "kernels/gpu_cep_kernels/row_patterns/reach.py",
        "            same = word == reach[r, 0]\n",
        "            same = True\n",
        _ENGINE,
    ),
    Fault(
        "a-piece-of-a-window-is-not-mended",
        "gpu_cep/engine/row_patterns/reach.py",
        "            mend_earliest_ends(pieces, labels, automaton, earliest)",
        "            pass",
        _ENGINE,
    ),
    Fault(
        "matches-of-a-piece-begin-with-its-first-row",
        "kernels/gpu_cep_kernels/row_patterns/matches.py",
        "            start = chains.left[p - 1]\n",
        "            start = begin\n",
        _ENGINE,
    ),
    Fault(
        "matches-of-a-piece-stay-where-none-begin",
        "kernels/gpu_cep_kernels/row_patterns/matches.py",
        "                for r in range(start + 1, min(target, end)):\n",
        "                for r in range(start + 1, start + 1):\n",
        _ENGINE,
    ),
    Fault(
        "a-fault-that-was-supposed-stays",
        "kernels/gpu_cep_kernels/row_patterns/matches.py",
        "                chains.faults[p] = fault\n",
        "",
        _ENGINE,
    ),
    Fault(
        "matches-that-leave-a-piece-in-any-state-end-alike",
        "kernels/gpu_cep_kernels/row_patterns/matches.py",
        "stop = trail.crossed[p, state]",
        "stop = trail.crossed[p].max()",
        _ENGINE,
    ),
)
