"""``collidium demo``: the whole platform on one machine, with five real events and ordered ones."""

from collidium.datasets import sample

#: The five real events, a parquet file for each table.
EVENTS_DIRECTORY = sample.DIRECTORY
