"""Prove the GPU engine, and measure it where there is a card."""
