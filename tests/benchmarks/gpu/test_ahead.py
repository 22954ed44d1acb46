"""What is compiled ahead of queries is what they run."""

from __future__ import annotations

from benchmarks.gpu.ahead import all_used
from gpu_cep_kernels.compile.ahead import forms
from gpu_cep_kernels.compile.forms import form_of


def test_the_list_is_current():
    """``python -m benchmarks.gpu.ahead`` writes it anew."""
    launched, called = all_used()
    current = [form_of(kernel, types.args) for kernel, types in launched.values()]
    current += [form_of(*each, on_cpu=True) for each in called.values()]
    listed = forms()
    assert [form for form in current if form not in listed] == []
    assert [form for form in listed if form not in current] == []
