"""gpu_cep on Spark; users reach it as :func:`gpu_cep.gpu_match` and :func:`gpu_cep.register`."""

from gpu_cep_spark.matching import gpu_match
from gpu_cep_spark.sql import register

__all__ = ["gpu_match", "register"]
