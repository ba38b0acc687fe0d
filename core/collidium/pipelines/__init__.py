"""Simulates events on this machine: which pipeline, where it runs, its stages, and what they leave."""
