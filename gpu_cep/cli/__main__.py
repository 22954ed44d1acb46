"""Run ``gpu-cep`` as ``python -m gpu_cep.cli``."""

import sys

from gpu_cep.cli import main

sys.exit(main())
