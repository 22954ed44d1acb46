"""What spares sessions of the fast suite time: settings of Spark, and names in the JVM that are asked for once."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JVMView

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

# With the engine loaded, which each worker would import by itself.
DAEMON = "tests.spark.warm_daemon"
SETTINGS: dict[str, bool | float | int | str | None] = {
    # a plan that runs once, over few rows, is interpreted sooner than compiled
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # errors need not name lines of Python, for which Spark asks the JVM three times a column
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # nobody watches the bar, which a thread of its own would draw anew five times a second
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": DAEMON,
}


def remember_names(patched: pytest.MonkeyPatch) -> None:
    """Let each class of the JVM, and each of its static members, be looked up once.

    PySpark asks for them at every use. The JVM then searches all jars for a class named like a package.
    """
    for kind in (JVMView, JavaClass):
        patched.setattr(kind, "__getattr__", cache(kind.__getattr__))


def share_daemons(session: SparkSession) -> None:
    """Let functions of Python have the environment of those that the extension has Java make.

    Spark starts a daemon for each environment.
    """
    jvm: Any = session._jvm
    utils = getattr(getattr(jvm.org.apache.spark.api.python, "PythonUtils$"), "MODULE$")
    session.sparkContext.environment = dict(utils.createPythonFunction(b"").envVars())


def warm_python(folder: Path) -> str:
    """Write a command that is this Python, but runs our daemon in place of Spark's; return its path.

    The workers that analyse SQL are forked by Spark's daemon, whatever the settings say.
    """
    command = folder / "python"
    command.write_text(f"""#!/bin/sh
if [ "$1 $2" = "-m pyspark.daemon" ]; then shift 2; set -- -m {DAEMON} "$@"; fi
exec '{sys.executable}' "$@"
""")
    command.chmod(0o755)
    return str(command)
