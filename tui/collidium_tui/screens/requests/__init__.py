"""Requests: everybody's simulation requests, one of them, and its cancellation."""
