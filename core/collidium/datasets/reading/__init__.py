"""Reads tables of a dataset from parquet shards, in bounded memory."""
