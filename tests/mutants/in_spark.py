"""Faults in what Spark runs."""

from __future__ import annotations

from tests.mutants.fault import Fault

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
    Fault(
        "slices-of-spark-copy-into-their-own",
        "spark_glue/gpu_cep_spark/slices.py",
        "F.when(last > home, 2 * last)",
        "F.when(last > home, 2 * home)",
        ("tests/spark/test_slices.py",),
    ),
    Fault(
        "streams-in-one-row-group-count-as-large",
        "spark_glue/gpu_cep_spark/statistics.py",
        "median([*shares, *[0.0] * absent])",
        "median(shares)",
        ("tests/spark/test_slice_choice.py",),
    ),
    Fault(
        "shuffles-leave-tasks-to-spark",
        "spark_glue/gpu_cep_spark/shuffle_tasks.py",
        "df.repartition(*keys) if tasks is None else df.repartition(tasks, *keys)",
        "df.repartition(*keys)",
        ("tests/spark/test_slice_choice.py",),
    ),
    Fault(
        "unknown-streams-are-cut",
        "spark_glue/gpu_cep_spark/slice_choice.py",
        "if plan.stream_keys and shares is None:",
        "if plan.query.partition_by and shares is None:",
        ("tests/spark/test_slice_choice.py",),
    ),
)
