"""One query on a card, in a new process: ``python -m benchmarks.gpu.first_query EVENTS ASKED BEGUN`` prints its seconds as JSON.

EVENTS is an Arrow file, ASKED the query and the keywords of match as JSON, BEGUN the time at which the process was started.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence


def main(argv: Sequence[str]) -> None:
    path, asked, begun = argv[0], json.loads(argv[1]), float(argv[2])
    # what a user's process loads for a query, and no more
    from pyarrow import feather

    from gpu_cep import api
    from gpu_cep.engine.phase_one.engine_choice import require_device

    marks = [begun, time.time()]
    require_device()
    marks.append(time.time())
    events = feather.read_table(path)
    for _ in range(2):
        api.match(events, asked["query"], engine="gpu", **asked["keywords"])
        marks.append(time.time())
    print(json.dumps([after - before for before, after in zip(marks, marks[1:], strict=False)]))


if __name__ == "__main__":
    main(sys.argv[1:])
