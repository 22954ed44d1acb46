"""Find matches by trying everything, as the definitions say.

The oracle judges all engines, and shares no code with plan, engine or kernels.
"""
