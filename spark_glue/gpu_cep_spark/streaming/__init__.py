"""Match streaming DataFrames: Spark keeps watermark, state and offsets, the engine runs in each batch."""
