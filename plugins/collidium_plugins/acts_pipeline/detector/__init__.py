"""The detector: an Open Data Detector-like tracker, its fast simulation and its reconstruction with ACTS."""
