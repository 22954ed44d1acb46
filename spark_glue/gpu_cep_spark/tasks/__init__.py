"""Match the events that one task on an executor holds, within its memory."""
