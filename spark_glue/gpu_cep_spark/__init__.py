"""gpu_cep on Spark; users reach it as :func:`gpu_cep.gpu_match`."""

from gpu_cep_spark.matching import gpu_match

__all__ = ["gpu_match"]
