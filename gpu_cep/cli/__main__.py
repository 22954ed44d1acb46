"""``python -m gpu_cep.cli`` is ``gpu-cep``."""

import sys

from gpu_cep.cli import main

sys.exit(main())
