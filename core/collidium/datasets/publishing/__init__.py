"""Publishes a local dataset as a repository of a hub: checks it, withholds truth, uploads the files."""
