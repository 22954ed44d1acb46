"""Run on this CPU what numba-cuda generates for a card: the code that NVVM takes, compiled by LLVM."""
