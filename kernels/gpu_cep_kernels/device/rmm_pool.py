"""Let arrays come from a memory pool of RAPIDS where one was set up in this process.

Spark's RAPIDS plugin sets one up in every Python worker before any other code
runs. An environment variable says how far it may grow.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# Set by the plugin, in bytes; 0 is no limit.
LIMIT = "RAPIDS_POOLED_MEM_MAX_SIZE"


def current_pool() -> Any | None:
    """Return RMM's pool for the current device, or None where RMM is not in use or has no pool."""
    rmm = sys.modules.get("rmm")
    resource = None if rmm is None else rmm.mr.get_current_device_resource()
    return resource if hasattr(resource, "pool_size") else None


def adopt_pool(cupy: Any) -> None:
    """Let CuPy allocate from the pool, if there is one: nobody else can use the memory that it holds."""
    if current_pool() is not None:
        from rmm.allocators.cupy import rmm_cupy_allocator

        cupy.cuda.set_allocator(rmm_cupy_allocator)


def pool_bytes(pool: Any, free: int) -> int:
    """Return the bytes that the pool may hold at most, if `free` are free outside it.

    They include what is in use, which the pool does not tell.
    """
    return int(os.environ.get(LIMIT, "0")) or int(pool.pool_size()) + free
