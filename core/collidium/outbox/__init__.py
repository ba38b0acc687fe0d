"""Tells the world what happened: events written in the transaction that makes them true, sent as webhooks."""

from collidium.outbox.events import SIMULATION_COMPLETED, announce

__all__ = ["SIMULATION_COMPLETED", "announce"]
