"""Computes scores from predictions and truth, with standard errors. Loads no server and no database."""
