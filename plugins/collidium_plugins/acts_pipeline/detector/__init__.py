"""A tracker modelled on the Open Data Detector: fast simulation and reconstruction with ACTS."""
