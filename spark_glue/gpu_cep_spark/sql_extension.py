"""Configure sessions of Spark whose SQL takes MATCH_RECOGNIZE by itself; the extension's sources are in spark_glue/java."""

from __future__ import annotations

from pathlib import Path

EXTENSION = "gpu_cep.spark.Extension"
JAR = Path(__file__).with_name("extension.jar")


def sql_conf() -> dict[str, bool | float | int | str | None]:
    """Return a configuration with which ``spark.sql`` and all SQL clients take MATCH_RECOGNIZE.

    It is for ``SparkSession.builder.config(map=…)``, spark-submit, spark-sql, the
    Thrift server or a Connect server. It must be there when Spark starts.

    ``SELECT … FROM t MATCH_RECOGNIZE (…) AS m`` then gives the rows that
    :func:`gpu_cep.sql` gives. ``gpu_match(TABLE(t), pattern => '…')`` is there
    as if :func:`gpu_cep.register` had been called. All other SQL is Spark's, untouched.

    Returns
    -------
    dict
        The setting ``spark.sql.extensions``, a class, and ``spark.jars``, the
        path of the jar that has it. If a session has others of either, write
        them with commas between.
    """
    return {"spark.sql.extensions": EXTENSION, "spark.jars": str(JAR)}
