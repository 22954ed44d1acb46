"""Faults in MATCH_RECOGNIZE over streams and slices of time."""

from __future__ import annotations

from tests.mutants.fault import Fault

_STREAMS = ("tests/api/streams/test_row_streams.py",)
_SLICES = ("tests/spark/slices/test_row_slices.py",)
_BUCKETS = ("tests/spark/streaming/test_row_patterns.py",)

ROW_STREAMS = (
    Fault(
        "a-match-is-certain-before-a-preferred-one-may-come",
        "kernels/gpu_cep_kernels/row_patterns/reach.py",
        "found = min(found, r + 1)",
        "found = found",
        _STREAMS,
    ),
    Fault(
        "a-window-is-open-for-ever",
        "gpu_cep/engine/streaming/row_patterns.py",
        "np.asarray(ordered.take(times) >= earliest_open(until, length))",
        "np.ones(len(ordered), np.bool_)",
        _STREAMS,
    ),
    Fault(
        "rows-before-are-given-up",
        "gpu_cep/engine/streaming/row_patterns.py",
        "begun.firsts - rows_before(plan)",
        "begun.firsts",
        _STREAMS,
    ),
    Fault(
        "rows-of-a-match-come-out-as-unmatched",
        "gpu_cep/engine/streaming/row_patterns.py",
        "covered_rows(matches, len(ordered)) | given.matched",
        "covered_rows(matches, len(ordered))",
        _STREAMS,
    ),
    Fault(
        "matches-are-counted-anew",
        "gpu_cep/engine/streaming/row_patterns.py",
        "counts = begun.counts + ",
        "counts = ",
        _STREAMS,
    ),
    Fault(
        "what-is-known-of-the-rows-of-a-bucket-is-forgotten",
        "spark_glue/gpu_cep_spark/streaming/marks.py",
        "if not variable.exists():",
        "if True:",
        _BUCKETS,
    ),
    Fault(
        "rows-of-a-bucket-that-are-given-up-begin-matches",
        "spark_glue/gpu_cep_spark/streaming/marks.py",
        "new_marks(len(numbers), passed=True)",
        "new_marks(len(numbers))",
        _BUCKETS,
    ),
    Fault(
        "rows-of-a-bucket-come-in-the-order-of-arrival",
        "spark_glue/gpu_cep_spark/streaming/marks.py",
        "if not ties:",
        "if True:",
        _BUCKETS,
    ),
    Fault(
        "a-bucket-of-row-patterns-never-waits-for-time",
        "spark_glue/gpu_cep_spark/streaming/state.py",
        "else not known.open",
        "else True",
        _BUCKETS,
    ),
    Fault(
        "slices-begin-with-their-first-row-alone",
        "gpu_cep/engine/row_patterns/slices.py",
        "<= np.uint64(window.length)",
        "< np.uint64(0)",
        _SLICES,
    ),
    Fault(
        "candidates-overlap",
        "gpu_cep/engine/row_patterns/slices.py",
        'ranks[count:][examples], side="right")',
        'ranks[:count][examples], side="right")',
        _SLICES,
    ),
    Fault(
        "copies-begin-matches",
        "gpu_cep/engine/row_patterns/slices.py",
        "kept = ordered.take(own)[matches.firsts]",
        "kept = np.ones(len(matches), np.bool_)",
        _SLICES,
    ),
)
