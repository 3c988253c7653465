"""Faces of other evaluators: their names, signatures and keys over this library's numbers.

`from recsys.compat import pytrec_eval` replaces `import pytrec_eval`; docs/drop-in.md says what differs.
A face holds no arithmetic, and none is imported before it is asked for.
"""
