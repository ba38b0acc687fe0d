"""Public datasets of the hub, and single events of them, read from the hub by byte ranges and cached."""

from collidium.event_display.datasets import SAMPLE
from collidium.event_display.decoding import RowHashes
from collidium.event_display.display import EventDisplay, HashesOf, ShownEvent, StoredEvent, Wanted

__all__ = ["SAMPLE", "EventDisplay", "HashesOf", "RowHashes", "ShownEvent", "StoredEvent", "Wanted"]
