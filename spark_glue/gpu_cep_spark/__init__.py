"""gpu_cep on Spark; users reach it as :func:`gpu_cep.gpu_match`, :func:`gpu_cep.register` and the like."""

from gpu_cep_spark.matching import gpu_match
from gpu_cep_spark.rapids import rapids_conf
from gpu_cep_spark.run_report import RunReport
from gpu_cep_spark.sql import register

__all__ = ["RunReport", "gpu_match", "rapids_conf", "register"]
