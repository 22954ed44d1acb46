"""Settings that all tests share: the fast suite, and with ``--full`` everything."""

from __future__ import annotations

import gc
import os
from unittest import mock

from gpu_cep_kernels.compile.jit import Kernel, plain
from tests import effort

# Tests read what is said on stderr, and whether kernels must be compiled for one of them is chance.
os.environ.setdefault("GPU_CEP_QUIET", "1")


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run everything, with all examples, and not the fast suite alone")
    parser.addoption("--as-found", action="store_true", help="show examples that fail as they are found, which takes less time")
    parser.addoption("--awkward", action="store_true", help="run with tiny batches, spilled events, one thread and no pruning")
    parser.addoption("--plain", action="store_true", help="run kernels uncompiled: slow, but at once after an edit")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: run by the full suite alone")
    config.addinivalue_line("markers", "usual: asks what the usual settings do, and is not run with --awkward")
    config.addinivalue_line("markers", "surface: run behind a Connect server by the fast suite, too")
    asked = os.environ.get("CEP_EXAMPLES")
    # before any module is imported that asks how many examples there are
    if config.getoption("--plain"):
        mock.patch.object(Kernel, "__call__", lambda kernel, *arguments: plain(kernel)(*arguments)).start()
    if config.getoption("--awkward"):
        from tests.awkward import make_awkward

        make_awkward()
    suite = "full" if config.getoption("--full") else "fast"
    effort.load(suite, int(asked) if asked else None, shrinks=not config.getoption("--as-found"))


def pytest_collection_modifyitems(config, items):
    markers = [marker for marker, runs in (("full", config.getoption("--full")), ("usual", not config.getoption("--awkward"))) if not runs]
    left_out = {item for item in items if any(map(item.get_closest_marker, markers))}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=[*left_out])


def pytest_collection_finish(session):
    """Spare the collector of cycles the thousands of tests, and let it look less often for what else is left."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
