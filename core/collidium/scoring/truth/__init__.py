"""Truth on disk: its files, how they are written, and their import from dataset tables."""
