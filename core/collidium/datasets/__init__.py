"""Datasets: collision events of a hub or a directory, in memory with one line.

::

    from collidium import datasets

    datasets.list_configs("alice/odd-ttbar")
    hits = datasets.load("alice/odd-ttbar", "ttbar_pu0", "tracker_hits", "0:1000", columns=["x", "y", "z"])
    datasets.flat(hits, "tracker_hits")       # one row per hit
    datasets.download("alice/odd-ttbar", "ttbar_pu0", ["tracker_hits", "particles"], "0:1000")
"""

from collidium.datasets.catalogue import ConfigEntry, ShardEntry, TableEntry
from collidium.datasets.dataset import Dataset
from collidium.datasets.downloads import NoRoom
from collidium.datasets.flattening import flat
from collidium.datasets.hub import Fetched, download, fetch, list_configs, list_repositories, list_tables
from collidium.datasets.loading import load
from collidium.datasets.places import HubDataset
from collidium.datasets.shards import EventTable

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
