"""Datasets: where their shards lie, what their columns mean, and how they are read and fetched."""

from collidium.datasets.dataset import Dataset
from collidium.datasets.hub import Fetched, HubDataset, fetch
from collidium.datasets.shards import EventTable

__all__ = ["Dataset", "EventTable", "Fetched", "HubDataset", "fetch"]
