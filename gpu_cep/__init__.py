"""Give the public names of gpu_cep, which finds patterns of events in columns of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_cep.api import Profile, explain, match, parse
from gpu_cep.bound_events import Events, events
from gpu_cep.errors import (
    AbsentValueWarning,
    CepError,
    EngineUnavailable,
    EventError,
    FailedPatternWarning,
    MatchLimitExceeded,
    PatternError,
    PatternSyntaxError,
    UnsupportedError,
)
from gpu_cep.keywords import Tuning
from gpu_cep.progress_tables import progress
from gpu_cep.rule_sets.files import load_rules
from gpu_cep.rule_sets.matching import explain_all, match_all
from gpu_cep.rule_sets.rules import Rule

if TYPE_CHECKING:
    from gpu_cep.display.plotting import Picture, Timeline, plot, waterfall
    from gpu_cep.display.reporting import Report, report
    from gpu_cep.engine.compressed.compressed import Compressed
    from gpu_cep.lang.builder import (
        all_of,
        any_,
        any_of,
        avg,
        case,
        count,
        count_distinct,
        duration,
        first,
        first_,
        fn,
        i,
        last,
        literal,
        max,
        median,
        min,
        next_,
        not_,
        prev,
        same,
        seq,
        sum,
        var,
    )
    from gpu_cep.rule_sets.streams import RuleStream, stream_all
    from gpu_cep.sql_answers import sql
    from gpu_cep.streams import Stream, stream
    from gpu_cep_spark import (
        RunReport,
        SparkEvents,
        gpu_match,
        gpu_match_all,
        gpu_progress,
        heartbeats,
        rapids_conf,
        register,
        sql_conf,
    )

__version__ = "0.1.0"

__all__ = [
    "AbsentValueWarning",
    "CepError",
    "Compressed",
    "EngineUnavailable",
    "EventError",
    "Events",
    "FailedPatternWarning",
    "MatchLimitExceeded",
    "PatternError",
    "PatternSyntaxError",
    "Picture",
    "Profile",
    "Report",
    "Rule",
    "RuleStream",
    "RunReport",
    "SparkEvents",
    "Stream",
    "Timeline",
    "Tuning",
    "UnsupportedError",
    "all_of",
    "any_",
    "any_of",
    "avg",
    "case",
    "count",
    "count_distinct",
    "duration",
    "events",
    "explain",
    "explain_all",
    "first",
    "first_",
    "fn",
    "gpu_match",
    "gpu_match_all",
    "gpu_progress",
    "heartbeats",
    "i",
    "last",
    "literal",
    "load_rules",
    "match",
    "match_all",
    "max",
    "median",
    "min",
    "next_",
    "not_",
    "parse",
    "plot",
    "prev",
    "progress",
    "rapids_conf",
    "register",
    "report",
    "same",
    "seq",
    "sql",
    "sql_conf",
    "stream",
    "stream_all",
    "sum",
    "var",
    "waterfall",
]


_ON_SPARK = frozenset(
    ("RunReport", "SparkEvents", "gpu_match", "gpu_match_all", "gpu_progress", "heartbeats", "rapids_conf", "register", "sql_conf")
)


def __getattr__(name: str) -> Any:
    # imported on first use: pyspark, matplotlib and the query builder would slow down every `import gpu_cep`
    if name == "Compressed":
        from gpu_cep.engine.compressed.compressed import Compressed

        return Compressed
    if name in ("Picture", "Timeline", "plot", "waterfall"):
        from gpu_cep.display import plotting

        return getattr(plotting, name)
    if name in ("Report", "report"):
        from gpu_cep.display import reporting

        return getattr(reporting, name)
    if name in ("Stream", "stream"):
        from gpu_cep import streams

        return getattr(streams, name)
    if name in ("RuleStream", "stream_all"):
        from gpu_cep.rule_sets import streams as rule_streams

        return getattr(rule_streams, name)
    if name == "sql":
        from gpu_cep import sql_answers

        return sql_answers.sql
    if name in _ON_SPARK:
        import gpu_cep_spark

        return getattr(gpu_cep_spark, name)
    if name in __all__:
        from gpu_cep.lang import builder

        return getattr(builder, name)
    raise AttributeError(f"module 'gpu_cep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
