"""Faults in what streams keep and when they report, and where they lie."""

from __future__ import annotations

from tests.mutants.fault import Fault

_STREAMING = "gpu_cep/engine/streaming"
_CERTAINTY, _HORIZON, _KEPT = "gpu_cep/plan/certainty.py", f"{_STREAMING}/horizon.py", f"{_STREAMING}/kept_events.py"
_OPEN, _VALUES, _DICTIONARIES = (
    f"{_STREAMING}/certainty.py",
    "gpu_cep/engine/input/chunk_dictionaries.py",
    ("tests/engine/input/test_chunk_dictionaries.py",),
)
_STEPS, _TIMES, _LAST = "gpu_cep/live/steps.py", "gpu_cep/live/clocks.py", "gpu_cep/engine/phase_one/last_variables.py"
_ENDS, _SITUATIONS = "gpu_cep/engine/events/match_ends.py", "gpu_cep/engine/intervals/run.py"
_RUNS, _OVER = "gpu_cep/engine/matchers/automaton/longest_runs.py", "gpu_cep/engine/timeouts.py"
_LONGEST = "kernels/gpu_cep_kernels/automaton/longest_runs.py"
_TIMEOUTS, _RUN_KERNELS = ("tests/api/streams/test_timeouts.py",), ("tests/kernels/automaton/test_longest_runs.py",)
_STREAM = ("tests/api/streams/test_stream.py",)
_PROGRESS, _HOW_FAR = "gpu_cep/progress_tables.py", ("tests/api/test_progress.py",)
_ARRIVALS, _OF_BUCKETS = "spark_glue/gpu_cep_spark/streaming/arrivals.py", ("tests/spark/streaming/test_buckets.py",)
_KEPT_EVENTS = ("tests/engine/streaming/test_kept_events.py",)
_BUCKET_STATE = "spark_glue/gpu_cep_spark/streaming/state.py"
_OF_QUERIES = "spark_glue/gpu_cep_spark/streaming/rule_states.py"
_LONG_STREAMS, _CLOCK = ("tests/api/streams/test_long_streams.py",), ("tests/api/streams/test_clock.py",)
_SESSIONS, _SILENT_KEYS = f"{_STREAMING}/sessions.py", ("tests/api/streams/test_silent_keys.py",)
_DETECTED = ("tests/api/streams/test_detected_at.py",)
_IN_ORDER, _PLANNER = "tuple(relation for relation in RELATIONS if relation in shared)", ("tests/plan/test_planner.py",)
_DISJOINT, _HELD_MATCHES = "gpu_cep/engine/slices/disjoint.py", "gpu_cep/engine/slices/held_matches.py"
_HELD = ("tests/engine/slices/test_held_matches.py",)
_OUTPUTS, _BATCHES = ("tests/api/streams/test_outputs.py",), ("tests/api/streams/test_event_batches.py",)

STREAMS = (
    Fault("quantified-end-reported-at-once", _CERTAINTY, " or _ends_quantified(plan, branch)", "", _STREAM),
    Fault("open-negation-reported-at-once", _CERTAINTY, "any(not negation.before for", "any(False for", _STREAM),
    Fault("window-over-a-tick-early", _OPEN, "window_begin(later, window)", "window_begin(following(later), window)", _STREAM),
    Fault("what-comes-at-infinity-comes-again", "gpu_cep/engine/streaming/state.py", " or self.watermark == math.inf", "", _CLOCK),
    Fault("situations-planned-otherwise-in-another-process", "gpu_cep/analysis/bind_intervals.py", _IN_ORDER, "tuple(shared)", _PLANNER),
    Fault("a-float-window-over-a-rounding-late", _OPEN, " and math.isfinite(later):", " and math.isnan(later):", _DETECTED),
    Fault("last-match-reported-twice", "gpu_cep/engine/input/ticks.py", "max(EARLIEST, time + 1)", "max(EARLIEST, time)", _STREAM),
    Fault("event-at-the-watermark-in-time", _STEPS, "in_time = times > clock.watermark", "in_time = times >= clock.watermark", _CLOCK),
    Fault("matched-beyond-the-watermark", _HORIZON, " if until is None else count_until(state, until)", "", _STREAM),
    Fault("ends-forgotten-where-the-first-counts", _LAST, " or not run.plan.settings.keeps_all", "", _OUTPUTS),
    Fault("last-variable-of-one-branch-inside-another", _LAST, "return bits if apart else 0", "return bits", _OUTPUTS),
    Fault("quantified-last-variable-forgotten", _LAST, " and pattern.maximum[v] == 1", "", _OUTPUTS),
    Fault("rows-of-batches-in-any-order", _TIMES, "    if live.in_order and behind == latest:", "    if live.in_order:", _BATCHES),
    Fault("what-is-not-certain-yet", "gpu_cep/live/runs.py", "watermark=watermark))\n", "finished=True))\n", _BATCHES),
    Fault("numbered-matches-counted-twice", _STEPS, "numbering.total - before", "numbering.total", _OUTPUTS),
    Fault("windows-of-numbers-begun-anew", _HORIZON, "over=horizon.over - dropped", "over=0", _OUTPUTS),
    Fault("one-event-too-few-kept", _HORIZON, "known - window.events + 1)", "known - window.events + 2)", _OUTPUTS),
    Fault("event-before-the-window-forgotten", _HORIZON, "state, before, tied)", "state, before, tied[:0])", _OUTPUTS),
    Fault("order-of-arrival-taken-for-order", _KEPT, "if falls:", "if False:", _STREAM),
    Fault("values-of-old-events-kept", _VALUES, "> most * len(column):", "> 1 << 60:", _STREAM),
    Fault(
        "unbindable-events-of-large-pushes-kept",
        _STEPS,
        "return keep_rows(after, *bindable_events(live, after.events)), found",
        "return after, found",
        _STREAM,
    ),
    Fault(
        "events-of-another-chunk-taken",
        "gpu_cep/engine/input/chunks.py",
        "rows - begins[:-1].repeat(np.diff(cuts))",
        "rows - cuts[:-1].repeat(np.diff(cuts))",
        _DICTIONARIES,
    ),
    Fault("push-kept-by-its-slice", _VALUES, "pa.concat_arrays(column.chunks) if", "column if", _STREAM),
    Fault("matches-numbered-anew", "gpu_cep/engine/slices/assembly.py", "counts[streams[: len(counted)]] = counted", "pass", _OUTPUTS),
    Fault("detected-before-the-last-run", _SITUATIONS, "isinstance(ends, TimeSlice) and ends != WHOLE", "False", _OUTPUTS),
    Fault("branches-that-wait-told-apart-by-nothing", _ENDS, "waits |= _binds(counts, branch)", "pass", _STREAM),
    Fault("closed-by-another-stream", _ENDS, "return behind < stream_ends,", "return behind < ordered.offsets[-1],", _STREAM),
    Fault("closed-match-reported-again", _ENDS, "reported & ~_are_closed(ends.before,", "reported | ~_are_closed(ends.before,", _STREAM),
    Fault("taken-matches-forgotten", _STEPS, "found, later, waits=waits)", "found, None, waits=waits)", _STREAM),
    Fault(
        "open-windows-of-one-key-forgotten",
        "gpu_cep/engine/slices/disjoint.py",
        "np.minimum.at(begins, streams[len(times) :], later.times)",
        "pass",
        _SILENT_KEYS,
    ),
    Fault("held-matches-that-end-stay", _DISJOINT, "known.marks.due < later.time", "known.marks.due > later.time", _HELD),
    Fault("new-matches-of-streams-that-wait-for-none", _DISJOINT, "        moving[len(known) - len(new) :] = True", "        pass", _HELD),
    Fault("held-matches-of-before-wait-for-none", _DISJOINT, "_marked(sliced, held).with", "_marked(sliced, held, later).with", _HELD),
    Fault("held-rows-in-the-place-of-others", _HELD_MATCHES, "others.places + self.table.num_rows", "others.places", _HELD),
    Fault(
        "kind-of-a-row-is-its-key",
        "gpu_cep/engine/slices/disjoint.py",
        "kinds = int(sliced.whole.settings.kind is not None)",
        "kinds = 0",
        ("tests/api/streams/test_timeouts.py",),
    ),
    Fault("matches-wait-for-what-begins-none", _STEPS, "[may_begin(plan, known)[horizon.open]]", "", _SILENT_KEYS),
    Fault("timeouts-of-starts-with-a-match", _LONGEST, "runs.totals[w] = 1", "runs.totals[w] = 0", _RUN_KERNELS),
    Fault("longest-run-that-lacks-more", _LONGEST, "path.state[PathState.UNSATISFIED] - longest.unsatisfied[0]", "0", _RUN_KERNELS),
    Fault("longest-run-that-ends-later", _LONGEST, "path.event[depth - 1] - longest.last[0]\n    if", "0\n    if", _RUN_KERNELS),
    Fault("longest-run-behind-by-bindings", _LONGEST, "order = _compare_bindings(runs, path)", "order = 1", _RUN_KERNELS),
    Fault("matches-of-other-branches-forgotten", _RUNS, "np.flatnonzero(~np.isin(", "np.flatnonzero(np.ones_like(", _TIMEOUTS),
    Fault("branch-that-lacks-later-variables", _RUNS, "(*~missing.T[::-1], *keys", "(*missing.T[::-1], *keys", _TIMEOUTS),
    Fault("null-keys-that-agree", _OVER, "return reduce(or_, lone)[rows] if lone else None", "return None", _TIMEOUTS),
    Fault("windows-that-end-beyond-time", _ENDS, "times > latest - length, latest", "times > latest, latest", _TIMEOUTS),
    Fault("event-at-sparks-watermark-in-time", _ARRIVALS, "in_time = times > watermark", "in_time = times >= watermark", _OF_BUCKETS),
    Fault("chunk-with-an-event-at-the-watermark-taken", _ARRIVALS, "+ 1) <= watermark for", "+ 1) < watermark for", _OF_BUCKETS),
    Fault("times-sorted-by-their-low-bits", _KEPT, "(behind >> 16).astype", "(behind >> 32).astype", _KEPT_EVENTS),
    Fault("buckets-lose-an-event", _BUCKET_STATE, "np.isin(numbers, kept)", "np.isin(numbers, kept[1:])", _OF_BUCKETS),
    Fault("chunks-numbered-from-zero", _BUCKET_STATE, "initial=bucket.clock.pushed - new.rows)", "initial=0)", _OF_BUCKETS),
    Fault("chunks-of-a-batch-numbered-alike", _BUCKET_STATE, "accumulate((chunk.rows for", "accumulate((0 for", _OF_BUCKETS),
    Fault("buckets-called-late", _BUCKET_STATE, "return watermark + 1\n", "return watermark + 2\n", _OF_BUCKETS),
    Fault(
        "heartbeats-taken-for-events",
        "spark_glue/gpu_cep_spark/streaming/heartbeat_rows.py",
        "df.filter(behind_watermark(~column(HEARTBEAT), timestamp)).drop",
        "df.drop",
        ("tests/spark/streaming/test_streaming.py",),
    ),
    Fault("late-events-not-returned", _ARRIVALS, "events.column(name).filter(pa.array(~in_time))", "events.column(name)", _OF_BUCKETS),
    Fault("numbers-of-buckets-forgotten", _OF_QUERIES, " and self.state.numbering is None", "", _OF_BUCKETS),
    Fault("settled-before-the-last-event", _BUCKET_STATE, "latest <= clock.answered", "clock.answered > 0", _OF_BUCKETS),
    Fault("windows-of-numbers-count-what-was-dropped", _BUCKET_STATE, "return counted or bucket.rows", "return bucket.rows", _OF_BUCKETS),
    Fault("another-querys-state-is-taken", _OF_QUERIES, 'told["query"] != rule.digest', "False", _OF_BUCKETS),
    Fault("progress-of-each-match", _PROGRESS, '"after_match": "skip_to_next"', '"after_match": "all"', _HOW_FAR),
    Fault("progress-by-last-events", _PROGRESS, 'Aggregate("first",', 'Aggregate("last",', _HOW_FAR),
    Fault(
        "timeouts-are-completed-under-spark",
        "spark_glue/gpu_cep_spark/progress_tables.py",
        "F.lit(MATCH)",
        'F.col("c0")',
        ("tests/spark/test_progress_tables.py",),
    ),
    Fault("ruled-out-is-completed", _PROGRESS, 'found.column("kind"), "match")', "rows.column(REACHED), len(names))", _HOW_FAR),
    Fault(
        "filters-pass-the-watermark",
        "spark_glue/gpu_cep_spark/narrowing/narrow_frames.py",
        " and df.isStreaming:",
        " and not df:",
        ("tests/spark/streaming/test_streaming.py",),
    ),
    Fault(
        "keys-of-last-events-are-read-for-first-ones",
        "gpu_cep/engine/streaming/moving_streams.py",
        "return horizon.own, Role.FIRST",
        "return horizon.own, Role.LAST",
        _LONG_STREAMS,
    ),
    Fault(
        "keys-without-tags-by-later-events",
        "gpu_cep/engine/streaming/moving_streams.py",
        "deciding[codes[places]] = True",
        "deciding[codes[places][-1:]] = True",
        _LONG_STREAMS,
    ),
    Fault(
        "half-a-second-of-a-datetime-is-cut",
        _TIMES,
        "return bool(value.cast(own.type).equals(own))",
        "return True",
        _CLOCK,
    ),
    Fault("tags-of-other-events", _KEPT, "merged[untouched:] = merged[untouched:][order]", "pass", _STREAM),
    Fault(
        "hashes-of-what-is-beside-a-text",
        "kernels/gpu_cep_kernels/phase_one/text.py",
        "word_of(text, place, min(end - place, 8))",
        "word_of(text, place, 8)",
        ("tests/engine/events/test_key_hashes.py",),
    ),
    Fault(
        "keys-of-the-first-new-time-are-not-read",
        "gpu_cep/engine/streaming/moving_streams.py",
        "int(np.searchsorted(times, at))",
        "int(np.searchsorted(times, at, side='right'))",
        _LONG_STREAMS,
    ),
    Fault(
        "a-match-of-two-recent-situations-is-found-twice",
        "gpu_cep/engine/intervals/join.py",
        "for name in range(order[0]):",
        "for name in range(0):",
        _LONG_STREAMS,
    ),
    Fault(
        "decided-events-bound-by-open-runs-are-started-again",
        "gpu_cep/engine/timeouts.py",
        "if restrict_labels(ordered.labels[:, bound & ~begin], (first,)).any():",
        "if False:",
        _LONG_STREAMS,
    ),
    Fault(
        "one-neighbour-too-few-is-kept",
        f"{_STREAMING}/decisive.py",
        "<= number]",
        "< number]",
        _LONG_STREAMS,
    ),
    Fault(
        "neighbours-that-tie-are-given-up",
        f"{_STREAMING}/decisive.py",
        "return np.flatnonzero(times >= since[streams])",
        "return np.sort(last)",
        _LONG_STREAMS,
    ),
    Fault(
        "touching-situations-are-given-up",
        "gpu_cep/engine/intervals/situations.py",
        "for _ in range(contacts - 1):",
        "for _ in range(contacts - 2):",
        _LONG_STREAMS,
    ),
    Fault(
        "situations-apart-are-given-up",
        f"{_STREAMING}/decisive.py",
        "if not _APART.intersection(each.relations)",
        "",
        _LONG_STREAMS,
    ),
    Fault(
        "timeouts-of-neighbours-are-given-up",
        "gpu_cep/live/plans.py",
        "None if settings.kind is not None else decided_by_streams(plan)",
        "decided_by_streams(plan)",
        _LONG_STREAMS,
    ),
    Fault(
        "buckets-spread-as-they-are-numbered",
        "spark_glue/gpu_cep_spark/streaming/packing.py",
        "order[(begins[:, None] + np.arange(each)).ravel()].astype(np.int32)",
        "np.arange(each * partitions, dtype=np.int32)",
        _OF_BUCKETS,
    ),
    Fault("silence-as-long-as-allowed-ends-a-session", _SESSIONS, "> np.uint64(length)", ">= np.uint64(length)", _SILENT_KEYS),
    Fault("sessions-closed-by-events-alone", _SESSIONS, "self.followed | (self.last", "self.followed & (self.last", _SILENT_KEYS),
    Fault("matches-of-sessions-numbered-as-one", _SESSIONS, " | (sessions[1:] != sessions[:-1])", "", _SILENT_KEYS),
    Fault("windows-of-sessions-reported-again", _HORIZON, "OwnRows(over & ~np.append(", "OwnRows(over | ~np.append(", _SILENT_KEYS),
    Fault("negations-of-sessions-look-back-too-little", _HORIZON, "< 2 * (window.events - 1))", "< window.events - 1)", _SILENT_KEYS),
    Fault(
        "buckets-of-silent-keys-are-never-called",
        _BUCKET_STATE,
        "return None if known.closing is None else -(-known.closing // TICKS)",
        "return None",
        ("tests/spark/streaming/test_silent_keys.py",),
    ),
    Fault(
        "open-situations-lead-to-no-match",
        "gpu_cep/engine/intervals/situations.py",
        "found = is_open | since.holds",
        "found = since.holds",
        _LONG_STREAMS,
    ),
)
