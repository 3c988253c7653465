"""One evaluation: inputs to ranks to values per case to a result, with its intervals, bounds and files.

The verbs (evaluate, recommend, score_list, evaluate_candidates, evaluate_ratings, load) are names of
`recsys`.
"""
