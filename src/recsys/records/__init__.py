"""What all rooms pass around: the frozen arrays, and the registry of whatever can be added."""
