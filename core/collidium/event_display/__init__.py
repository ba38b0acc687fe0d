"""What everyone may see: the public datasets of the hub, and single events of them.

Nothing is copied here but answers, for a while: of a repository only the bytes are read that hold the event.
"""

from collidium.event_display.datasets import SAMPLE
from collidium.event_display.display import EventDisplay, ShownEvent, Wanted

__all__ = ["SAMPLE", "EventDisplay", "ShownEvent", "Wanted"]
