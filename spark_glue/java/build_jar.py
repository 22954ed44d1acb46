"""Build the jar with the extension of Spark's SQL: ``python spark_glue/java/build_jar.py [FILE]``.

PySpark brings along a compiler of Java and all classes that the extension names, so that a Java runtime is all that it takes.
The same sources give the same bytes on every machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pyspark

SOURCES = Path(__file__).parent
JAR = SOURCES.parent / "gpu_cep_spark" / "extension.jar"
JARS = Path(pyspark.__file__).parent / "jars"
COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"


def build_jar(jar: Path) -> None:
    """Write the jar.

    Raises
    ------
    ChildProcessError
        The sources cannot be compiled; the compiler has said why.
    """
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    classes = os.pathsep.join(map(str, sorted(JARS.glob("*.jar"))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiler = [java, "-classpath", JARS / "*", COMPILER]
        given = ["-g:none", "-d", folder, "-classpath", classes, *sorted(SOURCES.rglob("*.java"))]
        if subprocess.run([*compiler, *given], check=False).returncode:
            raise ChildProcessError("the sources of the jar cannot be compiled")
        with ZipFile(jar, "w") as packed:
            for file in sorted(folder.rglob("*.class")):
                # a ZipInfo has the same date whenever it is made
                packed.writestr(ZipInfo(file.relative_to(folder).as_posix()), file.read_bytes())


if __name__ == "__main__":
    build_jar(*map(Path, sys.argv[1:2] or [JAR]))
