"""Requests: all simulation requests, one of them, and its cancellation."""
