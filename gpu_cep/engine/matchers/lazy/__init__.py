"""Match with lazy chain and tree automata: rare variables first."""
