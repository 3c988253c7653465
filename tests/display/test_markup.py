"""Tables as Markdown and LaTeX."""

from __future__ import annotations

from recsys.display.markup import latex_table


def test_latex_escapes_every_special_sign():
    made = latex_table({"model": [r"a\b~c^d<e>f|g&h%i$j#k_l{m}"], "value": [0.5]})
    words = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar")
    assert all(rf"\text{word}{{}}" in made for word in words)
    assert r"\&h\%i\$j\#k\_l\{m\}" in made
