"""Name the values that keywords of the public functions take, for checks at run time and for type checkers."""

from __future__ import annotations

from typing import Literal

Strategy = Literal[
    "strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match", "robust_skip_till_next_match"
]  # fmt: skip
Ties = Literal["strict", "position"]
Nulls = Literal["error", "drop"]
TimeUnit = Literal[
    "ns", "us", "ms", "s", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks"
]  # fmt: skip
Allen = Literal["paper", "1983"]
Detect = Literal["final", "early"]
AfterMatch = Literal["all", "skip_past_last", "skip_to_next"]
Engine = Literal["auto", "cpu", "gpu"]
EventAlgorithm = Literal["auto", "ses_automaton", "backtracking", "nfab", "lazy_chain", "lazy_tree", "join_tree", "brute_force"]
Algorithm = Literal[EventAlgorithm, "range_join", "end_join", "nested_loop"]
PruningStep = Literal["filter", "reach", "partition", "lift", "summary", "chain", "overlap"]
TableOutput = Literal["matches", "events", "indices", "count"]
Output = Literal[TableOutput, "compressed"]
FrameResult = Literal["arrow", "pandas", "polars", "duckdb", "cudf"]
Result = Literal[FrameResult, "reader"]
Scan = Literal["auto", "spark", "files", "gpu_files"]
OnError = Literal["raise", "report"]
