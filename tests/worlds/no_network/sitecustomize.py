"""Every Python that starts with this folder on its path asks no other machine, and writes down that it would.

The hook sees the sockets of Python code; no_network.c, loaded before the C library, those of compiled code.
"""

import os
import sys

ADDRESS = {  # event: which of its arguments names the other machine
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
    "urllib.Request": 0,
}


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Raise if another machine is asked. A socket with an address that is a path is one of this machine."""
    if event not in ADDRESS:
        return
    asked = arguments[ADDRESS[event]]
    if isinstance(asked, tuple):
        asked = asked[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        return
    host = asked.decode("ascii", "replace") if isinstance(asked, bytes) else str(asked)
    if asked is None or host in {"", "localhost", "::1", "0.0.0.0"} or host.startswith(("127.", "file:")):  # noqa: S104
        return
    with open(os.environ["RECSYS_NETWORK_LOG"], "a", encoding="utf-8") as log:  # noqa: PTH123
        log.write(f"{event} {host}\n")
    raise ConnectionRefusedError(f"{event} {host}: nothing may ask the network here")


sys.addaudithook(refuse)
