"""A protocol file: data, split, relevance, candidates, conventions, metrics, models and tests in one TOML.

What was measured on what is written down once and executed as written, so that a second party gets the same
`result` bytes; where and when it ran stays outside of them.
"""

from recsys.cli.protocol.protocol_file import Protocol, read_protocol
from recsys.cli.protocol.protocol_run import Outcome, run_protocol

__all__ = ["Outcome", "Protocol", "read_protocol", "run_protocol"]


def __dir__() -> list[str]:
    return __all__
