"""Find patterns of events in tables: which events, in what order, under which conditions, within what time.

>>> import pyarrow as pa
>>> import gpu_cep as cep
>>> trades = pa.table({"ts": [1, 2, 3, 4], "type": ["Buy", "Quote", "Buy", "Sell"], "price": [10, 12, 8, 9]})
>>> pattern = "PATTERN SEQ(Buy b, Sell s) WHERE s.price < b.price WITHIN 5 RETURN b.price AS bought, s.price AS sold"
>>> cep.match(trades, pattern).to_pylist()
[{'match_start': 1, 'match_end': 4, 'bought': 10, 'sold': 9}]

====================  ==============================================================================
to ask                call
====================  ==============================================================================
tables and files      ``match``; ``progress`` tells how far each start came; ``sql`` a statement
several questions     ``events`` says once what columns are; ``match_all`` answers many patterns at once
Spark                 ``gpu_match``, ``gpu_progress``, ``gpu_match_all``; ``register`` for Spark's SQL
events that come      ``stream``, ``stream_all``
what happens inside   ``explain``, ``plot``, ``report``, ``Profile``
patterns in Python    ``var``, ``seq``, ``all_of``, ``any_of``, ``not_`` and others
====================  ==============================================================================

All errors are a ``CepError``, and show their place in the query.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpu_cep.api import explain, match
from gpu_cep.bound_events import Events, events
from gpu_cep.engine.accounting.profile import Profile
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
from gpu_cep.lang.parser import parse
from gpu_cep.progress_tables import progress
from gpu_cep.rule_sets.files import load_rules
from gpu_cep.rule_sets.matching import explain_all, match_all
from gpu_cep.rule_sets.rules import Rule

if TYPE_CHECKING:
    from gpu_cep.display.plotting import Picture, Timeline, plot, waterfall
    from gpu_cep.display.reporting import Report, report
    from gpu_cep.engine.compressed.compressed import Compressed
    from gpu_cep.engine.input.device.gpu_files import gpu_files
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
    "gpu_files",
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


# Where the names are that are imported on first use: pyspark, matplotlib and the query builder would slow down every `import gpu_cep`.
_MODULES = {
    "Compressed": "gpu_cep.engine.compressed.compressed",
    **dict.fromkeys(("Picture", "Timeline", "plot", "waterfall"), "gpu_cep.display.plotting"),
    **dict.fromkeys(("Report", "report"), "gpu_cep.display.reporting"),
    **dict.fromkeys(("Stream", "stream"), "gpu_cep.streams"),
    **dict.fromkeys(("RuleStream", "stream_all"), "gpu_cep.rule_sets.streams"),
    "gpu_files": "gpu_cep.engine.input.device.gpu_files",
    "sql": "gpu_cep.sql_answers",
    **dict.fromkeys(("RunReport", "SparkEvents", "gpu_match", "gpu_match_all", "gpu_progress"), "gpu_cep_spark"),
    **dict.fromkeys(("heartbeats", "rapids_conf", "register", "sql_conf"), "gpu_cep_spark"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gpu_cep' has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "gpu_cep.lang.builder")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
