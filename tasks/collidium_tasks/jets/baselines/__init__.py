"""Answers from what is measured alone."""
