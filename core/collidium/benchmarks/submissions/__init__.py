"""Submissions: keeping them, their scorings, rescoring and verification."""
