"""Container engines of this machine: for stages of local simulations, and for the container runner."""
