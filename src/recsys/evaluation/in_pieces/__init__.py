"""Users evaluated in pieces (in batches, beyond memory, on a cluster), and the result they add up to."""
