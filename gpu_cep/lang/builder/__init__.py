"""Build queries in Python: ``gpu_cep.seq``, ``gpu_cep.var`` and so on give the same trees as the text.

Built objects are no nodes; each holds one as `ast`. Nodes are compared by ``==``, while ``==`` of
built objects makes a condition.
"""

from gpu_cep.lang.builder.expressions import duration, literal, same
from gpu_cep.lang.builder.functions import avg, case, count, count_distinct, first, fn, last, max, median, min, prev, sum
from gpu_cep.lang.builder.patterns import all_of, any_, any_of, first_, next_, not_, seq, var
from gpu_cep.lang.builder.queries import Buildable, query_of
from gpu_cep.lang.builder.references import i

__all__ = [
    "Buildable",
    "all_of",
    "any_",
    "any_of",
    "avg",
    "case",
    "count",
    "count_distinct",
    "duration",
    "first",
    "first_",
    "fn",
    "i",
    "last",
    "literal",
    "max",
    "median",
    "min",
    "next_",
    "not_",
    "prev",
    "query_of",
    "same",
    "seq",
    "sum",
    "var",
]
