"""What is compiled ahead of queries is what they launch."""

from __future__ import annotations

from benchmarks.gpu.ahead import all_launched
from gpu_cep_kernels.compile.ahead import form_of, forms


def test_the_list_is_current():
    """``python -m benchmarks.gpu.ahead`` writes it anew."""
    current = [form_of(kernel, types.args) for kernel, types in all_launched().values()]
    listed = forms()
    assert [form for form in current if form not in listed] == []
    assert [form for form in listed if form not in current] == []
