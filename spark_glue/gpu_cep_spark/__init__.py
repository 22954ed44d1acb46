"""gpu_cep on Spark; users reach it as :func:`gpu_cep.gpu_match`, :func:`gpu_cep.register` and :func:`gpu_cep.rapids_conf`."""

from gpu_cep_spark.matching import gpu_match
from gpu_cep_spark.rapids import rapids_conf
from gpu_cep_spark.sql import register

__all__ = ["gpu_match", "rapids_conf", "register"]
