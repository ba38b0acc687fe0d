"""Collidium: the open platform for particle-physics machine learning."""

__version__ = "0.4.0a1"
