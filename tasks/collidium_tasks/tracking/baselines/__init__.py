"""Honest reconstructions from positions alone: something to beat, and something to start from."""
