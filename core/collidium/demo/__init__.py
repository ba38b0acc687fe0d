"""The whole loop on five real events and events that are ordered, on one machine: ``collidium demo``.

``data/`` holds the events; its README names their source and licence.
"""

from collidium.datasets import sample

#: The five real events, a parquet file for each table.
EVENTS_DIRECTORY = sample.DIRECTORY
