"""Faults in events, texts and results of the engine."""

from __future__ import annotations

from tests.mutants.fault import CONFORMANCE, Fault

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
        "return window_begin(start, length)",
        "return window_begin(start, length) + 1",
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
        "labels-of-each-piece-at-the-first",
        "gpu_cep/engine/phase_one/label_events.py",
        "labels[:, begin - low : end - low])",
        "labels[:, : end - begin])",
        ("tests/engine/input/test_pieces.py",),
    ),
    Fault(
        "absent-variables-bind-the-next-event",
        "kernels/gpu_cep_kernels/matches/flat_matches.py",
        "placed[m, k] = rows[events[place]] if counts[m, v] > 0 else -1",
        "placed[m, k] = rows[events[place]] if counts[m, v] >= 0 else -1",
        ("tests/engine/events/test_matches.py", "tests/engine/output/test_absent_variables.py"),
    ),
    Fault(
        "places-of-each-part-from-zero",
        "gpu_cep/engine/events/matches.py",
        "+= before[part][:, np.newaxis]",
        "+= 0 * before[part][:, np.newaxis]",
        ("tests/engine/events/test_runs.py",),
    ),
    Fault(
        "short-lists-without-a-rest",
        "kernels/gpu_cep_kernels/rules/copies.py",
        "for i in range(copied, end - target):",
        "for i in range(copied, min(end - target, _AT_ONCE)):",
        ("tests/conformance/test_neighbours.py",),
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
        "gpu_cep/engine/events/settling.py",
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
    Fault(
        "pieces-fall-unseen",
        "gpu_cep/engine/phase_one/order_events.py",
        "return all(before <= after for (_, before), (after, _) in pairwise(ends))",
        "return all(before <= after for (before, _), (_, after) in pairwise(ends))",
        ("tests/engine/input/test_pieces.py",),
    ),
    Fault(
        "pieces-end-a-row-early",
        "gpu_cep/engine/input/pieces.py",
        "low - begin : end - begin",
        "low - begin : end - begin - 1",
        ("tests/engine/input/test_pieces.py",),
    ),
    Fault(
        "label-words-are-remembered-by-number-of-values",
        "gpu_cep/engine/phase_one/label_steps.py",
        "_table_of_few(Identity(planned), bytes_of(values), word)",
        "_table_of_few(Identity(planned), tuple(sorted(bytes_of(values))), word)",
        ("tests/engine/phase_one/test_label_codes.py",),
    ),
)
