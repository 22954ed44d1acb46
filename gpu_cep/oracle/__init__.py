"""Find matches by trying everything, straight from the definitions; shares no code with plan, engine or kernels."""
