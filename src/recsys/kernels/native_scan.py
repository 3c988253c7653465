"""The call of the compiled scan: arrays are allocated here, so that NumPy owns every result."""
