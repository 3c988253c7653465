"""One self-contained HTML file: template, style, script and data under a content security policy.

Names and ids are untrusted, so the template escapes everything, data is in a JSON block whose markup
characters are escaped, scripts run by their hash only, nothing is fetched, and Vega interprets its
expressions instead of evaluating code.
"""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

import recsys
from recsys.errors import needs_extra
from recsys.report.charts.chart import vl_convert

_GLOBALS = "window.vegaEmbed = vegaEmbed;"
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_SVG_STYLE = (
    "'unsafe-inline'"  # Vega sets fonts of SVG text by style attribute; style elements are admitted by hash
)


def offline_page(name: str, data: Any, *, draws: bool = False, **values: Any) -> str:
    """Return a page from name.html, name.css and name.js, within the frame that all pages share.

    The style of the report, page.css, comes before its own, and frame.js before its script.

    Args:
        name: of the three files next to this module.
        data: what the script reads, as JSON.
        draws: whether it has charts, so that it carries the Vega scripts.
        values: what the template reads besides.
    """
    with needs_extra("jinja2", "report", "Writing a report"):
        import jinja2
    style = "\n".join(_asset(f"{sheet}.css") for sheet in dict.fromkeys(("page", name)))
    script = f"{_asset('frame.js')}\n{_asset(f'{name}.js')}"
    vega, vega_hash = _vega() if draws else ("", "")
    licences = _asset("third_party.txt") if draws else ""
    scripts = f"{_csp_hash(script)} {vega_hash}".strip()
    style_hash = _csp_hash(style)
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {style_hash}; style-src-elem {style_hash}; "
        f"style-src-attr {_SVG_STYLE}; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    written = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    text: str = environment.get_template(f"{name}.html").render(
        style=style, script=script, vega=vega, data=json_for_script(data), policy=policy,
        version=recsys.__version__, written=written, licences=licences, **values,
    )  # fmt: skip
    return text


def json_for_script(data: Any) -> str:
    r"""JSON that is safe inside a script element: no character of it can end the element.

    >>> json_for_script({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


@cache
def _asset(name: str) -> str:
    return files("recsys.report").joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _vega() -> tuple[str, str]:
    """Return the Vega scripts of the installed package, compressed, and their hash."""
    text: str = vl_convert().javascript_bundle(_GLOBALS)
    packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii"), _csp_hash(text)


def _csp_hash(text: str) -> str:
    """Return the hash by which a content security policy admits a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
