"""Time the library beside C++ loops written by hand and elementary operations."""
