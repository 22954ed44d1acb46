"""Declare kernels and drive them on the CPU; the only place that imports numba."""
