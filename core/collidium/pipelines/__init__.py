"""Simulation of events on this machine: choose a pipeline, run its stages, collect their output."""
