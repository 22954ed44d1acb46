"""What queries launch on a card, for processes that compile it ahead of them; no card is needed.

``python -m benchmarks.gpu.ahead`` asks the questions of :mod:`benchmarks.gpu.questions` as :mod:`benchmarks.gpu.cold_start` does, compiles
what they launch, and writes kernels/gpu_cep_kernels/compile/ahead.json anew: what takes longest comes first.
"""

from __future__ import annotations

import json
import time
from typing import Any

from benchmarks.gpu.cold_start import launched
from benchmarks.gpu.device_code import CAPABILITIES, machine_code, ptx_of
from benchmarks.gpu.questions import QUESTIONS
from gpu_cep_kernels.compile.ahead import FORMS, form_of
from gpu_cep_kernels.compile.jit import Kernel

Launched = dict[tuple[str, str], tuple[Kernel[..., Any], Any]]


def all_launched() -> Launched:
    """The kernels that the questions launch, each with its types."""
    return {(kernel.__name__, str(types)): (kernel, types) for question in QUESTIONS.values() for kernel, types in launched(question)}


def _seconds(kernel: Kernel[..., Any], types: Any) -> float:
    """The seconds of processor time to compile a kernel for the newest architecture."""
    begin = time.process_time()
    machine_code(ptx_of(kernel, types, CAPABILITIES[-1]), CAPABILITIES[-1])
    return time.process_time() - begin


def main() -> None:
    found = sorted(all_launched().values(), key=lambda each: -_seconds(*each))
    lines = [json.dumps(form_of(kernel, types.args)._asdict()) for kernel, types in found]
    FORMS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
