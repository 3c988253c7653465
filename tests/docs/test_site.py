"""The built site as a reader meets it: pages, their tables of contents, and the search in a real browser."""

import functools
import html
import http.server
import re
import threading

import pytest

from worlds.pages import ROOT

STATUS = ".md-search-result__meta"
SOURCES = sorted((ROOT / "docs").glob("**/*.md"))
# What people type, and a page that has to be among the first ten found.
SEARCHED = {
    "metric": "Metrics",
    "which metric": "Which metric when",
    "coverage": "Beyond accuracy: diversity, novelty, coverage, fairness",
    "cov": "Beyond accuracy: diversity, novelty, coverage, fairness",
    "leakage": "Audit an evaluation for data leakage",
    "data leakage": "Audit an evaluation for data leakage",
    "ndcg": "Metrics",
    "spark": "Spark and other clusters",
    "gate": "Continuous integration: a gate that comments on the change",
    "split": "Protocols: train and test splits, negatives, data sets",
    "notebook": "Reports, figures and charts",
    "ties": "Conventions and presets",
    "evaluate": "Tutorial: from files to a report in ten minutes",
    "confidence interval": "Statistical tests and confidence intervals",
    "FAQ": "How do I …?",
    "troubleshooting": "How do I …?",
    "glossary": "The standard, version 1",
    "huggingface": "Models and tools: implicit, PyTorch, MLflow and others",
    "license": "recsys: evaluate recommender systems",
}


def built(site, source):
    page = site / source.relative_to(ROOT / "docs").with_suffix(".html")
    return page.read_text(encoding="utf-8")


def words(markup):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).replace("¶", "").split())


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_page_is_built_of_what_was_written(site, source):
    """No fence is left as text, each is a block of code, and each heading is in the table of contents."""
    page, text = built(site, source), source.read_text(encoding="utf-8")
    article = page.split("<article", 1)[1].split("</article>", 1)[0]
    assert "```" not in page
    assert "~~~" not in page
    fences = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    blocks = [words(block) for block in re.findall(r"<pre>(.*?)</pre>", article, re.DOTALL)]
    assert [code for code in fences if " ".join(code.split()) not in blocks] == []
    prose = re.sub(r"^```\w+\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", h) for h in re.findall(r"^##+ (.+)$", prose, re.MULTILINE)]
    contents = "".join(
        re.findall(r'<nav class="md-nav md-nav--secondary".*?</nav>\s*</div>', page, re.DOTALL)
    )
    listed = [words(link) for link in re.findall(r'<a href="#[^"]*"[^>]*>(.*?)</a>', contents, re.DOTALL)]
    assert [heading for heading in headings if heading not in listed] == []


@pytest.fixture(scope="module")
def address(site):
    """The site on a port of this machine: a page that is opened as a file may not start the search."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Silent, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def search(browser, address):
    """What the search of the site says and finds, the best page first. Its script may not fail."""
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address + "index.html")
    field, status = page.locator("[data-md-component=search-query]"), page.locator(STATUS)
    titles = page.locator(".md-search-result__item article h1")

    def typed(text):
        field.click()
        field.fill("")
        field.press_sequentially(text)  # it searches at every letter
        page.wait_for_function(
            "at => /matching documents?$/.test(document.querySelector(at).textContent.trim())", arg=STATUS
        )
        shown = None
        while shown != (shown := (status.inner_text(), titles.all_inner_texts())):
            page.wait_for_timeout(1000)  # until the last letter has been searched for, also on a busy machine
        assert errors == []
        return shown

    yield typed
    page.close()


@pytest.mark.parametrize("text", SEARCHED)
def test_the_search_finds_what_people_type(search, text):
    said, found = search(text)
    assert SEARCHED[text] in [title.strip() for title in found], said


def test_the_search_says_where_nothing_is_found(search):
    assert search("zqxw") == ("No matching documents", [])
