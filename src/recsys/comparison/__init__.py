"""Comparisons of results: which model is better, why numbers differ, whether a model may ship.

The functions (compare, explain, gate, race, history) are names of `recsys`.
"""
