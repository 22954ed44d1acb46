"""Faults to plant in the sources: each is one exact text, what stands in its place, and the tests that should notice it first.

A text occurs once in its file (``test_faults.py`` beside this file says so): where a source is rewritten, the text is put right.
"""

from __future__ import annotations

from tests.mutants.fault import Fault
from tests.mutants.in_device import DEVICE
from tests.mutants.in_device_rows import DEVICE_ROWS
from tests.mutants.in_events import EVENTS, OUTPUT, TEXT
from tests.mutants.in_files import FILES
from tests.mutants.in_kernels import KERNELS
from tests.mutants.in_matchers import MATCHERS, SITUATIONS
from tests.mutants.in_plans import ANALYSIS
from tests.mutants.in_row_memory import ROW_MEMORY
from tests.mutants.in_row_patterns import ROW_PATTERNS
from tests.mutants.in_row_streams import ROW_STREAMS
from tests.mutants.in_rule_sets import RULE_SETS
from tests.mutants.in_rules import RULES
from tests.mutants.in_searches import DEVICE_SEARCHES
from tests.mutants.in_spark import SPARK
from tests.mutants.in_streams import STREAMS
from tests.mutants.in_walks import DEVICE_WALKS

FAULTS: tuple[Fault, ...] = (
    *ANALYSIS, *EVENTS, *OUTPUT, *TEXT, *FILES, *MATCHERS, *SITUATIONS, *SPARK, *STREAMS, *RULES, *ROW_PATTERNS, *ROW_MEMORY, *ROW_STREAMS,
    *DEVICE, *DEVICE_ROWS, *DEVICE_WALKS, *DEVICE_SEARCHES, *KERNELS, *RULE_SETS,
)  # fmt: skip
