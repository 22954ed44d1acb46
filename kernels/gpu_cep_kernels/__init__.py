"""Run compiled loops over arrays, on the CPU and on CUDA cards."""
