"""A protocol file: data, split, relevance, candidates, conventions, metrics, models and tests in one TOML.

The file says what is measured on what, and is executed as written, so that a second party gets the same
`result` bytes; where and when it ran is not part of them.
"""

from recsys.cli.protocol.protocol_file import Protocol, read_protocol
from recsys.cli.protocol.protocol_run import Outcome, run_protocol

__all__ = ["Outcome", "Protocol", "read_protocol", "run_protocol"]


def __dir__() -> list[str]:
    return __all__
