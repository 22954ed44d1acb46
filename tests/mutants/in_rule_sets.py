"""Faults in how rule sets share events, and where they lie."""

from __future__ import annotations

from tests.mutants.fault import Fault

_RUNS, _VALUES = "gpu_cep/rule_sets/runs.py", "gpu_cep/engine/rule_sets/bound_values.py"
_PAIRS, _NEAR = "gpu_cep/engine/rule_sets/paired_rows.py", "gpu_cep/engine/rule_sets/near_candidates.py"
_ON_SPARK, _SHUFFLES = "spark_glue/gpu_cep_spark/rule_sets/matching.py", "spark_glue/gpu_cep_spark/rule_sets/shuffles.py"
_EXPLAINED, _RARE = "spark_glue/gpu_cep_spark/rule_sets/explain.py", ("tests/spark/narrowing/test_rare_events.py",)
_IN_SQL, _SQL = "spark_glue/gpu_cep_spark/sql.py", ("tests/spark/test_sql.py",)
_STREAMED, _BUCKETS = "spark_glue/gpu_cep_spark/streaming", ("tests/spark/rule_sets/test_buckets_of_rules.py",)
_RULE_RUNS, _RULE_STATES, _LISTS_OF_RULES = f"{_STREAMED}/runs.py", f"{_STREAMED}/rule_states.py", f"{_STREAMED}/state.py"
_RULE_BUCKETS, _RULE_ARRIVALS = f"{_STREAMED}/buckets.py", f"{_STREAMED}/arrivals.py"
_FILTERS = "spark_glue/gpu_cep_spark/narrowing/rule_filters.py"
_MATCH_ALL, _SPARK = ("tests/api/rule_sets/test_match_all.py",), ("tests/spark/rule_sets/test_match_all.py",)

_STREAMS, _STREAM_ALL = "gpu_cep/rule_sets/streams.py", ("tests/api/rule_sets/test_stream_all.py",)
_CHANGED = ("tests/api/rule_sets/test_changed_rules.py",)

_PART = "        with suppress(CepError):\n            pairs = pair_rows("
_CROWDED, _LISTS = "gpu_cep/engine/rule_sets/crowded_rows.py", "gpu_cep/engine/rule_sets/row_lists.py"

RULE_SETS = (
    Fault("chosen-events-without-their-numbers", _STREAMS, "came.numbers[rows]", "came.numbers[: len(fitting)]", _STREAM_ALL),
    Fault("chosen-events-without-their-times", _STREAMS, "came.times[rows]", "came.times[: len(fitting)]", _STREAM_ALL),
    Fault("matches-of-removed-patterns-not-counted", _STREAMS, "clock.reported + sum(", "sum(", _CHANGED),
    Fault("late-events-of-many-taken", _STREAMS, "times > clock.watermark", "times >= clock.watermark", _STREAM_ALL),
    Fault("late-events-of-the-first-push-only", _STREAMS, "at_once=False, late=came.late)", "at_once=False)", _STREAM_ALL),
    Fault("silent-since-it-was-made", _STREAMS, "            self._came = monotonic()", "            pass", _STREAM_ALL),
    Fault("clock-of-a-rule-left-behind", _STREAMS, "clock=replace(own, watermark=clock.watermark,", "clock=replace(own,", _STREAM_ALL),
    Fault("picked-rows-without-numbers", _RUNS, 'events.origin.numbers_of(rows.astype("int64"))', "None", _MATCH_ALL),
    Fault("rows-picked-where-others-matter", _RUNS, "if not may_leave_out(plan, columns.schema):", "if False:", _MATCH_ALL),
    Fault("missing-times-passed-over", _RUNS, "plan.query.drops_untimed or not has_missing_times(", "True or (", _MATCH_ALL),
    Fault("rows-of-one-group-only", _RUNS, ".of(group.groups)", ".of(group.groups[:1])", _MATCH_ALL),
    Fault("negated-variables-need-no-rows", _VALUES, "range(len(query.variables))", "range(len(query.positives))", _MATCH_ALL),
    Fault("values-of-any-test", _VALUES, "reduce(or_,", "reduce(and_,", _MATCH_ALL),
    Fault("groups-of-rows-unsorted", _LISTS, "np.sort(np.concatenate(", "(np.concatenate(", _MATCH_ALL),
    Fault(
        "part-that-fails-fails-all",
        "gpu_cep/rule_sets/families.py",
        _PART,
        _PART.replace("with suppress(CepError)", "if True"),
        _MATCH_ALL,
    ),
    Fault("pairs-that-hold-are-cleared", _PAIRS, "labels[~holds] &=", "labels[holds] &=", _MATCH_ALL),
    Fault("null-holds-for-a-pair", _PAIRS, "holds &= ~nulls[rows]", "holds &= True", _MATCH_ALL),
    Fault("strongest-of-all-constants", _PAIRS, '"gt": min, "ge": min', '"gt": max, "ge": max', _MATCH_ALL),
    Fault("values-of-the-first-member", _PAIRS, "tests = list(family.values(member))", "tests = list(family.values(0))", _MATCH_ALL),
    Fault("fixed-properties-forgotten", _PAIRS, "(*labelled, *fixed, *related)", "(*labelled, *related)", _MATCH_ALL),
    Fault("windows-one-event-short", _NEAR, "(candidate_ends(own, candidates))", "(candidate_ends(own, candidates) - 1)", _MATCH_ALL),
    Fault("rows-near-negations-dropped", _NEAR, "return all(negation.after", "return all(True", _MATCH_ALL),
    Fault("near-others-by-the-shortest-window", _CROWDED, "_crowded(ordered, max(", "_crowded(ordered, min(", _MATCH_ALL),
    Fault("near-others-for-the-longest-match", _CROWDED, "fewest = min(", "fewest = 3 + min(", _MATCH_ALL),
    Fault("near-others-in-order", _CROWDED, "marks[rows[ordered.rows[crowded]]]", "marks[rows[crowded]]", _MATCH_ALL),
    Fault("near-others-without-a-time", _CROWDED, "rows[~missing], times[~missing]", "rows, times", _MATCH_ALL),
    Fault("near-others-of-other-keys", _CROWDED, "Neighbourhood(plan.stream_keys, ", "Neighbourhood((), ", _MATCH_ALL),
    Fault("lists-kept-one-off", _LISTS, "np.searchsorted(kept, self.offsets)", "np.searchsorted(kept, self.offsets, 'right')", _MATCH_ALL),
    Fault("values-found-without-a-row", _LISTS, "tolist(), strict=False) if count}", "tolist(), strict=False)}", _MATCH_ALL),
    Fault("values-placed-as-in-the-lists", _PAIRS, "place_of[lists.places[rows]]", "lists.places[rows]", _MATCH_ALL),
    Fault("shuffled-by-other-keys", _SHUFFLES, "in known if fewer <= own)", "in known if True)", _SPARK),
    Fault("slices-of-the-shortest-window", _SHUFFLES, "longest = max(", "longest = min(", _SPARK),
    Fault("slices-that-do-not-look-back", _SHUFFLES, "looks_back=any(", "looks_back=all(", _SPARK),
    Fault("copies-start-matches", _RUNS, "OwnRows(own.marks[rows])", "OwnRows(own.marks[rows] | True)", _SPARK),
    Fault("numbered-over-all-patterns", "spark_glue/gpu_cep_spark/assembly.py", "given[:beside]), *(", "given[:0]), *(", _SPARK),
    Fault("filter-of-the-first-rule", _FILTERS, "return _balanced(known)", "return known[0]", _SPARK),
    Fault("given-up-events-of-a-rule-come-back", _LISTS_OF_RULES, "flags[early] = self.needed", "flags[early] |= self.needed", _BUCKETS),
    Fault("events-behind-the-watermark-not-needed", _RULE_RUNS, "min(kept.times[0].item(), behind)", "kept.times[0].item()", _BUCKETS),
    Fault("a-rule-reads-the-windows-of-others", _RULE_RUNS, "needed = needed & (times[own.rows] >= since)", "pass", _BUCKETS),
    Fault("events-kept-of-the-last-rule-only", _RULE_RUNS, "np.unique(np.concatenate(kept))", "np.unique(kept[-1])", _BUCKETS),
    Fault("a-bucket-waits-for-rules-that-need-nothing", _LISTS_OF_RULES, "known.since <= self.latest", "True", _BUCKETS),
    Fault("a-checkpoint-belongs-to-nobody", f"{_STREAMED}/packing.py", "        if not place:", "        if place < 0:", _BUCKETS),
    Fault("a-changed-rule-goes-on", _RULE_STATES, 'rows[name]["query"] != digest', "False", _BUCKETS),
    Fault("numbers-of-rules-forgotten", _RULE_STATES, "plain = known.is_new and not state.over", "plain = True", _BUCKETS),
    Fault("late-events-counted-by-each-group", _RULE_BUCKETS, "new if place == 0 else", "new if True else", _BUCKETS),
    Fault(
        "events-that-the-first-rule-binds",
        _RULE_ARRIVALS,
        "[own.rows] = True\n        if",
        "[own.rows] = True\n        break\n        if",
        _BUCKETS,
    ),
    Fault("streams-matched-by-a-table-function", _IN_SQL, "else _of_tables(quote(name))", "else quote(name)", _SQL),
    Fault("instants-of-rules-in-a-session", _IN_SQL, "batch_schema(result, _ZONE)", "batch_schema(result, registration.zone)", _SQL),
    Fault("rare-variables-not-explained", _EXPLAINED, "self.rare.get(pattern, ())", "()", _RARE),
    Fault("no-count-of-nothing", _ON_SPARK, "counted = found.unionAll(", "counted = found if whole else found.unionAll(", _SPARK),
)
