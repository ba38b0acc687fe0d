"""Simulates events on this machine: chooses a pipeline and where it runs, runs its stages, checks the output."""
