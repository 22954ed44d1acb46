"""Faults to plant in the sources: each is one exact text, what stands in its place, and the tests that should notice it first.

A text occurs once in its file (``test_faults.py`` beside this file says so): where a source is rewritten, the text here is put right.
"""

from __future__ import annotations

from typing import NamedTuple

CONFORMANCE = "tests/conformance/test_conformance.py"
INTERVALS = "tests/conformance/test_intervals.py"
AUTOMATON = "tests/engine/matchers/automaton/test_letters.py"


class Fault(NamedTuple):
    """One planted fault: in file `path` the text `right` becomes `wrong`; `tests` are run before all others."""

    name: str
    path: str
    right: str
    wrong: str
    tests: tuple[str, ...]

    @property
    def in_kernels(self) -> bool:
        """Whether kernels have to be compiled again."""
        return self.path.startswith("kernels/")


ANALYSIS = (
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
        'ordered = True or not any(',
        ("tests/plan/test_robustness.py", CONFORMANCE),
    ),
)

EVENTS = (
    Fault(
        "window-of-one-event-more",
        "gpu_cep/engine/events/batches.py",
        "np.uint64(min(events - 1, 2**64 - 1))",
        "np.uint64(min(events, 2**64 - 1))",
        (CONFORMANCE,),
    ),
    Fault(
        "batch-reaches-one-event-less",
        "gpu_cep/engine/events/batches.py",
        "return last + int(found[0])",
        "return last + int(found[0]) - 1",
        ("tests/engine/events/test_batches.py", CONFORMANCE),
    ),
    Fault(
        "label-bit-of-later-words",
        "gpu_cep/engine/events/label_words.py",
        "return self.kind(bits >> self.first & self.everyone)",
        "return self.kind(bits >> self.first + (self.first > 0) & self.everyone)",
        ("tests/conformance/test_many_variables.py",),
    ),
    Fault(
        "slice-of-time-has-its-end",
        "gpu_cep/engine/events/own_events.py",
        "inside &= ticks < self.end",
        "inside &= ticks <= self.end",
        ("tests/engine/events/test_time_slices.py",),
    ),
    Fault(
        "slice-of-time-lacks-its-begin",
        "gpu_cep/engine/events/own_events.py",
        "inside &= ticks >= self.begin",
        "inside &= ticks > self.begin",
        ("tests/engine/events/test_time_slices.py",),
    ),
    Fault(
        "kept-events-one-tick-too-few",
        "gpu_cep/engine/events/own_events.py",
        "return start - length",
        "return start - length + 1",
        ("tests/engine/events/test_time_slices.py",),
    ),
    Fault(
        "own-rows-cut-at-the-wrong-end",
        "gpu_cep/engine/events/own_events.py",
        "highs = np.minimum(stream_ends, batch.high)",
        "highs = ends",
        ("tests/engine/events/test_own_rows.py", "tests/engine/events/test_time_slices.py"),
    ),
    Fault(
        "null-key-joins-the-least",
        "gpu_cep/engine/events/stream_keys.py",
        "xp.where(nulls, xp.int32(0), codes + xp.int32(1))",
        "xp.where(nulls, xp.int32(1), codes + xp.int32(1))",
        ("tests/engine/events/test_stream_keys.py", CONFORMANCE),
    ),
    Fault(
        "null-text-key-comes-last",
        "gpu_cep/engine/events/stream_keys.py",
        "np.append(dense_rank(values) + 1, 0)",
        "np.append(dense_rank(values), len(values))",
        ("tests/engine/events/test_stream_keys.py", CONFORMANCE),
    ),
    Fault(
        "keys-of-two-columns-collide",
        "gpu_cep/engine/events/stream_keys.py",
        "left.astype(xp.int64) * right_count + right, ",
        "left.astype(xp.int64) * max(right_count - 1, 1) + right, ",
        ("tests/engine/events/test_stream_keys.py", CONFORMANCE),
    ),
    Fault(
        "tie-of-the-last-two-forgotten",
        "gpu_cep/engine/events/tie_ranks.py",
        "xp.flatnonzero(same[1:] | same[:-1])",
        "xp.flatnonzero(same[1:])",
        ("tests/engine/phase_one/test_times.py", CONFORMANCE),
    ),
)

OUTPUT = (
    Fault(
        "order-by-behind-the-row",
        "gpu_cep/engine/output/result_order.py",
        "return [rows, *ties, by_time]",
        "return [*ties, rows, by_time]",
        (f"{CONFORMANCE}::test_order_by_orders_the_results_across_derived_keys",),
    ),
    Fault(
        "streams-by-the-last-key-first",
        "gpu_cep/engine/output/result_order.py",
        "np.lexsort(by_key[::-1])",
        "np.lexsort(by_key)",
        ("tests/engine/events/test_stream_keys.py", CONFORMANCE),
    ),
    Fault(
        "skip-to-next-by-last-event",
        "gpu_cep/engine/output/after_match.py",
        "np.flatnonzero(np.diff(matches.first, prepend=-1))",
        "np.flatnonzero(np.diff(matches.last, prepend=-1))",
        ("tests/engine/output/test_after_match.py", CONFORMANCE),
    ),
    Fault(
        "skip-past-last-by-first-event",
        "gpu_cep/engine/output/after_match.py",
        "np.lexsort((first, last, streams))",
        "np.lexsort((last, first, streams))",
        ("tests/engine/output/test_after_match.py", CONFORMANCE),
    ),
    Fault(
        "sum-of-nulls-is-zero",
        "gpu_cep/engine/output/returns.py",
        "return arrow_array(sums, present == 0, result)",
        "return arrow_array(sums, present < 0, result)",
        ("tests/engine/output/test_returns.py", CONFORMANCE),
    ),
    Fault(
        "one-match-more-than-the-limit",
        "gpu_cep/engine/accounting/match_budget.py",
        "self.max_matches is not None and self.matches > self.max_matches",
        "self.max_matches is not None and self.matches > self.max_matches + 1",
        ("tests/api/test_limits.py",),
    ),
    Fault(
        "limits-of-parts-not-added-up",
        "gpu_cep/engine/accounting/match_budget.py",
        "matches=self.matches, steps=self.steps)",
        "matches=0, steps=self.steps)",
        ("tests/engine/matchers/test_parts.py", "tests/spark/test_memory.py", "tests/spark/test_contract.py"),
    ),
)

TEXT = (
    Fault(
        "or-of-null-is-null",
        "gpu_cep/engine/lowering/text_predicates.py",
        '"or": pc.or_kleene',
        '"or": pc.or_',
        ("tests/engine/lowering/test_text_predicates.py",),
    ),
    Fault(
        "not-in-forgets-null",
        "gpu_cep/engine/input/host_functions.py",
        "len(known) < len(items)",
        "False",
        ("tests/engine/lowering/test_text_predicates.py", CONFORMANCE),
    ),
    Fault(
        "like-ignores-case",
        "gpu_cep/engine/lowering/text_predicates.py",
        "pc.match_like(_evaluate(subject, domain), pattern)",
        "pc.match_like(_evaluate(subject, domain), pattern, ignore_case=True)",
        ("tests/engine/lowering/test_text_predicates.py", CONFORMANCE),
    ),
    Fault(
        "other-texts-equal-the-constant",
        "gpu_cep/engine/lowering/text_predicates.py",
        '"".join(constants) + "."',
        '"".join(constants)',
        ("tests/engine/lowering/test_constant_codes.py", CONFORMANCE),
    ),
    Fault(
        "constants-on-the-left-forgotten",
        "gpu_cep/engine/lowering/text_predicates.py",
        " | (Constant(value=value), Field())):\n",
        "):\n",
        ("tests/engine/lowering/test_constant_codes.py", "tests/engine/lowering/test_text_predicates.py"),
    ),
)

MATCHERS = (
    Fault(
        "dead-ends-forget-the-last-event",
        "gpu_cep/engine/matchers/dead_ends.py",
        "loaded & {part.previous, part.last}",
        "loaded & {part.last}",
        ("tests/engine/matchers/automaton/test_dead_ends.py",),
    ),
    Fault(
        "dead-ends-forget-the-scope",
        "gpu_cep/engine/matchers/dead_ends.py",
        "*_negation_reads(branch))",
        ")",
        ("tests/engine/matchers/automaton/test_dead_ends.py", CONFORMANCE),
    ),
    Fault(
        "negation-judged-before-its-end",
        "gpu_cep/engine/matchers/negation_schedule.py",
        "set(after or maximal) | set(before or minimal)",
        "set(after or minimal) | set(before or minimal)",
        ("tests/engine/matchers/lazy/test_lazy_automata.py", CONFORMANCE),
    ),
    Fault(
        "negation-judged-before-its-binding",
        "gpu_cep/engine/matchers/negation_schedule.py",
        "(compared | _bindable(search, batch, n) | bounds)",
        "(compared | bounds)",
        ("tests/engine/matchers/lazy/test_lazy_automata.py", CONFORMANCE),
    ),
    Fault(
        "jump-not-mirrored",
        "gpu_cep/engine/lowering/jump_tables.py",
        "(right, left, _MIRRORED[comparison])",
        "(right, left, comparison)",
        ("tests/engine/matchers/automaton/test_jumps.py",),
    ),
    Fault(
        "jump-over-the-first-of-a-binding",
        "gpu_cep/engine/lowering/jump_tables.py",
        "else {part.each, part.first}",
        "else {part.each}",
        ("tests/engine/matchers/automaton/test_jumps.py",),
    ),
    Fault(
        "case-takes-null-for-true",
        "kernels/gpu_cep_kernels/rules/interpreter.py",
        "op == Op.SKIP or nulls[a] or ints[a] == 0",
        "op == Op.SKIP or ints[a] == 0",
        ("tests/kernels/rules/test_expressions.py", CONFORMANCE),
    ),
    Fault(
        "jump-forgets-what-decides-a-case",
        "gpu_cep/engine/lowering/jump_tables.py",
        "frozenset()) | read | deciding",
        "frozenset()) | read",
        ("tests/engine/matchers/automaton/test_jumps.py",),
    ),
    Fault(
        "join-of-the-reverse-order",
        "gpu_cep/engine/matchers/joins/sides.py",
        "(BEHIND, direct[size:, :size].T)",
        "(BEFORE, direct[size:, :size].T)",
        ("tests/engine/matchers/joins/test_join_tree.py", CONFORMANCE),
    ),
    Fault(
        "join-behind-all-instead-of-some",
        "gpu_cep/engine/matchers/joins/sides.py",
        "np.flatnonzero(before.all(axis=1))",
        "np.flatnonzero(before.any(axis=1))",
        ("tests/engine/matchers/joins/test_join_tree.py", CONFORMANCE),
    ),
    Fault(
        "alone-conditions-at-the-start-forgotten",
        "gpu_cep/engine/lowering/pattern_tables.py",
        "any(conditions[c].variables == {v} for c in own)",
        "False",
        (CONFORMANCE,),
    ),
)

SITUATIONS = (
    Fault(
        "longest-situations-known-from-the-start",
        "gpu_cep/engine/intervals/situations.py",
        "known[own] = runs.ended[own]",
        "known[own] = runs.first[own]",
        ("tests/engine/intervals/test_situations.py", INTERVALS),
    ),
    Fault(
        "ends-by-a-gap-at-their-event",
        "gpu_cep/engine/intervals/situations.py",
        "end - (runs.end != times[1])",
        "end",
        (INTERVALS,),
    ),
    Fault(
        "shortest-duration-is-open",
        "gpu_cep/engine/intervals/situations.py",
        "length >= length.dtype.type(duration.shortest)",
        "length > length.dtype.type(duration.shortest)",
        ("tests/engine/intervals/test_situations.py", INTERVALS),
    ),
    Fault(
        "longest-duration-is-open",
        "gpu_cep/engine/intervals/situations.py",
        "length <= length.dtype.type(duration.longest)",
        "length < length.dtype.type(duration.longest)",
        ("tests/engine/intervals/test_situations.py", INTERVALS),
    ),
    Fault(
        "empty-situations-are-kept",
        "gpu_cep/engine/intervals/situations.py",
        "suits = (end > start) & ~is_open",
        "suits = (end >= start) & ~is_open",
        ("tests/engine/intervals/test_situations.py", INTERVALS),
    ),
    Fault(
        "slices-of-situations-of-half-a-window",
        "gpu_cep/engine/intervals/chunks.py",
        "start - begin > window.length",
        "start - begin > window.length / 2",
        (INTERVALS,),
    ),
    Fault(
        "allen-compositions-of-few-endpoints",
        "gpu_cep/plan/allen.py",
        "combinations(range(6), 2)",
        "combinations(range(5), 2)",
        ("tests/plan/test_allen.py",),
    ),
)

SPARK = (
    Fault(
        "filter-drops-rows-without-time",
        "spark_glue/gpu_cep_spark/pushdown.py",
        "return untimed(query, schema) | _all(conjuncts)",
        "return _all(conjuncts)",
        ("tests/spark/test_pushdown.py", "tests/spark/test_contract.py"),
    ),
    Fault(
        "filter-of-a-disjunction-drops-an-arm",
        "spark_glue/gpu_cep_spark/pushdown.py",
        "filters = [implied_filter(argument, schema) for argument in arguments]",
        "filters = [each for argument in arguments if (each := implied_filter(argument, schema)) is not None] or [None]",
        ("tests/spark/test_pushdown.py",),
    ),
    Fault(
        "filter-of-rounded-integers",
        "spark_glue/gpu_cep_spark/pushdown.py",
        "abs(each.value) < EXACT_INTEGERS_OF_FLOAT",
        "abs(each.value) < 2 * EXACT_INTEGERS_OF_FLOAT",
        ("tests/spark/test_pushdown.py",),
    ),
    Fault(
        "filter-of-zero-by-its-sign",
        "spark_glue/gpu_cep_spark/pushdown.py",
        'TRUE_ON_EQUALITY = {"eq", "le", "ge", "in"}',
        'TRUE_ON_EQUALITY = {"eq", "le", "ge"}',
        ("tests/spark/test_pushdown.py",),
    ),
    Fault(
        "spilled-nans-are-several-streams",
        "spark_glue/gpu_cep_spark/spill.py",
        "np.where(np.isnan(values), np.nan, values.astype(np.float64))",
        "values.astype(np.float64)",
        ("tests/spark/test_memory.py",),
    ),
    Fault(
        "spilled-nulls-are-zeros",
        "spark_glue/gpu_cep_spark/spill.py",
        "found if nulls is None else np.where(nulls, np.uint64(_NULL), found)",
        "found",
        ("tests/spark/test_memory.py",),
    ),
    Fault(
        "spill-splits-by-the-same-bits",
        "spark_glue/gpu_cep_spark/spill.py",
        "np.uint64(BITS * level)",
        "np.uint64(0 * level)",
        ("tests/spark/test_memory.py",),
    ),
    Fault(
        "slices-of-spark-lack-an-event",
        "spark_glue/gpu_cep_spark/slices.py",
        "first = home - (behind < window)",
        "first = home - (behind + 1 < window)",
        ("tests/spark/test_slices.py",),
    ),
    Fault(
        "slices-of-spark-before-1970",
        "spark_glue/gpu_cep_spark/slices.py",
        "((ticks < 0) & (behind > 0))",
        "((ticks < 0) & (behind > length))",
        ("tests/spark/test_slices.py",),
    ),
)

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
        ("tests/engine/matchers/joins/test_join_tree.py", "tests/engine/matchers/automaton/test_jumps.py", CONFORMANCE),
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
        ("tests/engine/output/test_after_match.py", f"{CONFORMANCE}::test_matches_that_are_dropped_need_not_be_found"),
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

KERNELS = (
    Fault(
        "robust-never-steps-back",
        "kernels/gpu_cep_kernels/automaton/enumeration.py",
        "strategy == ANY or (strategy == ROBUST and not path.led[depth])",
        "strategy == ANY",
        (AUTOMATON, "tests/kernels/automaton/test_enumeration.py"),
    ),
    Fault(
        "contiguity-passes-over",
        "kernels/gpu_cep_kernels/automaton/enumeration.py",
        "viable = viable and strategy != CONTIGUOUS",
        "viable = viable and True",
        (AUTOMATON, "tests/kernels/automaton/test_enumeration.py"),
    ),
    Fault(
        "next-takes-a-later-event",
        "kernels/gpu_cep_kernels/automaton/enumeration.py",
        "path.next_place[k] = first_alive(v, place, end,",
        "path.next_place[k] = first_alive(v, int(events.occurrence[v, place + 1]), end,",
        (AUTOMATON, "tests/kernels/automaton/test_enumeration.py"),
    ),
    Fault(
        "matches-led-to-are-forgotten",
        "kernels/gpu_cep_kernels/automaton/enumeration.py",
        "path.led[depth] |= path.led[depth + 1]",
        "path.led[depth] = path.led[depth + 1]",
        (AUTOMATON, "tests/kernels/automaton/test_enumeration.py", CONFORMANCE),
    ),
    Fault(
        "dead-ends-of-longer-windows",
        "kernels/gpu_cep_kernels/automaton/dead_ends.py",
        "dead_ends.behind[place] <= position and end <= dead_ends.end[place]",
        "dead_ends.behind[place] <= position",
        ("tests/engine/matchers/automaton/test_dead_ends.py", CONFORMANCE),
    ),
    Fault(
        "dead-ends-by-hash-alone",
        "kernels/gpu_cep_kernels/automaton/dead_ends.py",
        "covers = dead_ends.keys[place, k] == dead_ends.key[k]",
        "covers = covers",
        ("tests/engine/matchers/automaton/test_dead_ends.py", CONFORMANCE),
    ),
    Fault(
        "jump-past-the-first-in-a-bucket",
        "kernels/gpu_cep_kernels/automaton/jumps.py",
        "if buckets.events[middle] < begin:",
        "if buckets.events[middle] <= begin:",
        ("tests/engine/matchers/automaton/test_jumps.py",),
    ),
    Fault(
        "join-binds-an-event-twice",
        "kernels/gpu_cep_kernels/joins/table_joins.py",
        "true &= one != other",
        "true &= one == one",
        ("tests/engine/matchers/joins/test_join_tree.py", f"{CONFORMANCE}::test_joins_find_the_matches_of_all_branches"),
    ),
    Fault(
        "join-condition-not-mirrored",
        "kernels/gpu_cep_kernels/joins/table_joins.py",
        "comparison = mirror_comparison(comparison)",
        "comparison = comparison",
        ("tests/engine/matchers/joins/test_join_tree.py", f"{CONFORMANCE}::test_joins_find_the_matches_of_all_branches"),
    ),
    Fault(
        "join-lacks-the-last-partner",
        "kernels/gpu_cep_kernels/joins/table_joins.py",
        "_first_out_of_reach(start, stop, end, earliest, right.first, streams) - start",
        "max(_first_out_of_reach(start, stop, end, earliest, right.first, streams) - start - 1, 0)",
        ("tests/engine/matchers/joins/test_join_tree.py",),
    ),
    Fault(
        "allen-contains-for-finishes",
        "kernels/gpu_cep_kernels/intervals/joins.py",
        "OVERLAPS if a_end < b_end else FINISHES if a_end == b_end else CONTAINS",
        "OVERLAPS if a_end < b_end else CONTAINS if a_end == b_end else FINISHES",
        (f"{INTERVALS}::test_each_relation_alone",),
    ),
    Fault(
        "allen-zone-one-too-early",
        "kernels/gpu_cep_kernels/intervals/joins.py",
        "if endpoints[middle] <= point:",
        "if endpoints[middle] < point:",
        (f"{INTERVALS}::test_each_relation_alone", INTERVALS),
    ),
    Fault(
        "early-duration-one-event-late",
        "kernels/gpu_cep_kernels/intervals/situations.py",
        "clock[middle] - begin < length",
        "clock[middle] - begin <= length",
        ("tests/engine/intervals/test_situations.py", INTERVALS),
    ),
    Fault(
        "counts-wrap-around",
        "kernels/gpu_cep_kernels/labels_decide/counting.py",
        "left + right if left <= UNBOUNDED - right else UNBOUNDED",
        "left + right",
        ("tests/engine/windows/test_state_counts.py", "tests/api/test_limits.py"),
    ),
    Fault(
        "nfab-merges-across-windows",
        "kernels/gpu_cep_kernels/nfab/growth.py",
        "if earliest < window and runs.unsatisfied[r] == 0:",
        "if runs.unsatisfied[r] == 0:",
        ("tests/engine/matchers/nfab/test_nfab.py", f"{CONFORMANCE}::test_algorithms_agree_whatever_the_batches"),
    ),
    Fault(
        "lazy-selects-the-last-bound",
        "kernels/gpu_cep_kernels/lazy/filters.py",
        "events[0] <= bound and bound <= events[size - 1]",
        "events[0] <= bound and bound < events[size - 1]",
        ("tests/engine/matchers/lazy/test_lazy_automata.py", f"{CONFORMANCE}::test_lazy_automata_find_all_matches"),
    ),
    Fault(
        "sort-is-not-stable",
        "kernels/gpu_cep_kernels/phase_one/ordering.py",
        "ranks[left] < ranks[right])",
        "ranks[left] <= ranks[right])",
        ("tests/kernels/phase_one/test_ordering.py", CONFORMANCE),
    ),
    Fault(
        "long-texts-by-their-ends",
        "kernels/gpu_cep_kernels/phase_one/text.py",
        "return k >= length - 8",
        "return k >= 8",
        ("tests/kernels/phase_one/test_text.py", "tests/engine/lowering/test_constant_codes.py"),
    ),
    Fault(
        "rare-events-reach-too-short",
        "kernels/gpu_cep_kernels/phase_one/rare_events.py",
        "ends[k] = _farthest(rows[k], rows[k], 1, first[k], last[k], clock, after) + 1",
        "ends[k] = _farthest(rows[k], rows[k], 1, first[k], last[k], clock, after)",
        ("tests/conformance/test_reach.py",),
    ),
)

FAULTS = (*ANALYSIS, *EVENTS, *OUTPUT, *TEXT, *MATCHERS, *SITUATIONS, *SPARK, *RULES, *KERNELS)
