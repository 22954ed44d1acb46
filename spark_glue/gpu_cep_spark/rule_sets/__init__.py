"""Match many patterns on Spark over as few shuffles as keep their streams together."""
