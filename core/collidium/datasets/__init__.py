"""Load and download collision events from a hub or a local directory.

::

    from collidium import datasets

    datasets.list_configs("alice/odd-ttbar")
    hits = datasets.load("alice/odd-ttbar", "ttbar_pu0", "tracker_hits", "0:1000", columns=["x", "y", "z"])
    datasets.flat(hits, "tracker_hits")       # one row per hit
    datasets.download("alice/odd-ttbar", "ttbar_pu0", ["tracker_hits", "particles"], "0:1000")
"""

from collidium.datasets.access import Fetched, download, fetch, list_configs, list_repositories, list_tables
from collidium.datasets.catalogue import ConfigEntry, ShardEntry, TableEntry
from collidium.datasets.loading import load
from collidium.datasets.reading.dataset import Dataset, flat
from collidium.datasets.reading.shards import EventTable
from collidium.hub.downloads import NoRoom
from collidium.hub.sources import HubDataset

__all__ = [
    "ConfigEntry",
    "Dataset",
    "EventTable",
    "Fetched",
    "HubDataset",
    "NoRoom",
    "ShardEntry",
    "TableEntry",
    "download",
    "fetch",
    "flat",
    "list_configs",
    "list_repositories",
    "list_tables",
    "load",
]
