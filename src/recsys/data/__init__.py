"""Data sets: the embedded demo world."""
