"""What spares sessions of the fast suite time: settings of Spark, and names in the JVM that are asked for once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from py4j.java_gateway import JavaClass, JVMView

if TYPE_CHECKING:
    import pytest

SETTINGS: dict[str, bool | float | int | str | None] = {
    # a plan that runs once, over few rows, is interpreted sooner than compiled
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # errors need not name lines of Python, for which Spark asks the JVM three times a column
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # nobody watches the bar, which a thread of its own would draw anew five times a second
    "spark.ui.showConsoleProgress": "false",
    # nor need each worker import the engine by itself
    "spark.python.daemon.module": "tests.spark.warm_daemon",
}


def remember_names(patched: pytest.MonkeyPatch) -> None:
    """Let each class of the JVM, and each of its static members, be looked up once.

    PySpark asks for them at every use. The JVM then searches all jars for a class named like a package.
    """
    for kind in (JVMView, JavaClass):
        patched.setattr(kind, "__getattr__", cache(kind.__getattr__))
