"""The report in a real browser: the system's Chromium, driven by Playwright; skipped where there is none."""

import base64
import json
import re

import numpy as np
import pytest

import recsys
from recsys.report import write_report
from worlds.browser import DRAWN, Visit
from worlds.report import HOSTILE, evaluations, world


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with every section."""
    lists, truth, train, items = world()
    audit = [
        {"name": "leak", "severity": "error", "count": 7, "examples": ["user 3"], "todo": "Split by time."}
    ]
    history = [
        {"time": f"2026-01-{d:02d}", "value": 0.3 + d / 100, "low": 0.2, "high": 0.5} for d in range(1, 9)
    ]
    return write_report(
        tmp_path_factory.mktemp("report") / "report.html", evaluations(lists, truth), lists=lists,
        truth=truth, train=train, items=items, audit=audit, history=history,
        embeddings=np.random.default_rng(0).standard_normal((len(items), 2)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A page whose every name is an attack."""
    lists, truth, train, _ = world(n_users=40, n_models=1)
    lists_by_user = next(iter(lists.values()))
    users = {u: f"{HOSTILE[u % len(HOSTILE)]} {u}" for u in truth}
    items = {i: f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(60)}
    named = {users[u]: [items[i] for i in row] for u, row in lists_by_user.items()}
    relevant = {users[u]: {items[i] for i in row} for u, row in truth.items()}
    train = train.assign(user_id=train["user_id"].map(users), item_id=train["item_id"].map(items))
    models = dict.fromkeys(HOSTILE, named)
    titles = {name: f"{name} title" for name in items.values()}
    audit = [{"name": n, "severity": "error", "count": 1, "examples": [n], "todo": n} for n in HOSTILE]
    history = [
        {"time": f"2026-01-{d:02d}", "value": 0.1, "model": n, "metric": n}
        for d in (1, 2)
        for n in HOSTILE[:3]
    ]
    return write_report(
        tmp_path_factory.mktemp("hostile") / "report.html",
        evaluations(models, relevant, k=(5, 10), by=lambda user: user[:30]),
        lists=models, truth=relevant, train=train, items=titles, audit=audit, history=history,
        title=HOSTILE[1], embeddings={name: [float(at), float(at % 7)] for at, name in enumerate(titles)},
    )  # fmt: skip


def test_it_loads_without_a_word_on_the_console_or_the_network_and_draws_every_chart(browser, report):
    with Visit(browser, report) as visit:
        assert visit.messages == []
        assert visit.requests == [report.as_uri()]
        assert visit.count(".plot") == visit.count(".plot svg") > 10
        assert visit.count(".plot.paper") == visit.count("figure.wide:not(#map figure)") == 2
        empty = visit.page.evaluate(
            "[...document.querySelectorAll('.plot svg')]"
            ".filter(s => !s.querySelector('.role-mark path, .role-mark line, .role-mark text')).length"
        )
        assert empty == 0


def test_names_that_are_attacks_are_shown_and_not_run(browser, hostile):
    with Visit(browser, hostile) as visit:
        page = visit.page
        for at in range(page.locator("#who option").count()):
            page.locator("#who").select_option(index=at)
        for button in page.locator("th button").all():
            button.evaluate("button => button.click()")
        page.locator(".plot svg").first.hover()
        assert page.evaluate("window.owned === undefined")
        assert page.locator("iframe, img, base, link, math").count() == 0
        assert "<script>window.owned=1</script>" in page.locator("main").inner_text()
        assert visit.messages == []
        assert visit.requests == [hostile.as_uri()]


def test_the_policy_stops_what_would_slip_through(browser, report, tmp_path):
    """A second line of defence: markup put into the file by hand runs nothing either."""
    text = report.read_text(encoding="utf-8")
    attack = "<script>window.owned=1</script><img src=https://example.invalid/x onerror='window.owned=1'>"
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("<main", attack + "<main", 1), encoding="utf-8")
    with Visit(browser, broken) as visit:
        assert visit.page.evaluate("window.owned === undefined")
        assert any("Content Security Policy" in line for line in visit.messages)
        tried = "done => setTimeout(() => { try { eval('1'); done('ran'); } catch (e) { done(e.name); } })"
        assert visit.page.evaluate(f"new Promise({tried})") == "EvalError"


def test_headings_sort_their_table_by_mouse_and_by_keyboard(browser, report):
    with Visit(browser, report) as visit:
        table = visit.page.locator("#ranking")
        head = table.locator("thead th").nth(1)

        def column():
            return table.locator("tbody tr").evaluate_all(
                "rows => rows.map(row => Number(row.cells[1].dataset.key))"
            )

        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        assert column() == sorted(column(), reverse=True)
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert column() == sorted(column())
        names = table.locator("thead th").first
        names.locator("button").click()
        assert names.get_attribute("aria-sort") == "ascending"
        assert head.get_attribute("aria-sort") == "none"


def choose(visit, **choices):
    """Choose in the selectors as a reader does."""
    for name, value in choices.items():
        visit.page.locator(f"#choose-{name}").select_option(value)


def ranking_cells(page):
    """The table of the models as it is read."""
    parts = page.locator("#ranking tbody th, #ranking tbody td").all_inner_texts()
    return [" | ".join(part.split("\n")) for part in parts]


def test_the_table_shows_what_was_chosen_and_the_numbers_are_those_computed(browser, report):
    lists, truth, *_ = world()
    results = evaluations(lists, truth)
    with Visit(browser, report) as visit:
        choose(visit, metric="recall", k="5")
        row = recsys.compare(results)["model 2", "model 0", "recall@5"]  # seen from the other side below
        assert visit.page.locator("#ranking-title").inner_text() == "The models on recall@5, against model 2"
        names = visit.page.locator("#ranking tbody th .v").all_inner_texts()
        assert names == sorted(results, key=lambda n: -results[n]["recall@5"])
        last = visit.page.locator("#ranking tbody tr").last
        assert last.locator("th").inner_text() == "model 0"
        text = last.inner_text()
        assert f"{results['model 0']['recall@5']:.4f}" in text
        assert f"{100 * (row.baseline_value / row.value - 1):+.1f}%" in text
        assert f"{row.losses} / {row.ties} / {row.wins}" in text
        assert "▼ worse" in text
        assert "a secondary metric" in visit.page.locator("#chosen").inner_text()
        choose(visit, metric="ndcg", k="10")
        assert "Holm over 2 comparisons on ndcg@10" in visit.page.locator("#chosen").inner_text()
        assert visit.messages == []


def test_the_script_shows_the_same_as_the_page_without_it(browser, report):
    with Visit(browser, report, drawn=False, java_script_enabled=False) as visit:
        static = ranking_cells(visit.page)
        title = visit.page.locator("#ranking-title").inner_text()
    with Visit(browser, report) as visit:
        assert ranking_cells(visit.page) == static
        assert visit.page.locator("#ranking-title").inner_text() == title
        choose(visit, metric="mrr")
        assert ranking_cells(visit.page) != static
        visit.page.locator("#choose-default").click()
        assert ranking_cells(visit.page) == static


def test_a_group_is_shown_for_the_headline_metric_with_tests_over_all_groups(browser, report):
    with Visit(browser, report) as visit:
        choose(visit, metric="mrr")
        group = visit.page.locator("#choose-group optgroup option").first.get_attribute("value")
        choose(visit, group=group)
        assert visit.page.locator("#choose-metric").is_disabled()
        title = visit.page.locator("#ranking-title").inner_text()
        assert title == f"The models on ndcg@10, against model 2, where {group}"
        says = visit.page.locator("#chosen").inner_text()
        assert "no other model is shown to be ahead of model " in says
        assert "hold for all groups and models together" in says
        reference, *tested = sorted(visit.page.locator("#ranking tbody td:nth-child(4)").all_inner_texts())
        assert reference == ""
        assert all(tested)
        choose(visit, group="all users")
        assert visit.page.locator("#choose-metric").is_enabled()


def test_what_was_chosen_is_in_the_address_beside_the_section(browser, report):
    with Visit(browser, report) as visit:
        choose(visit, metric="recall", k="5")
        assert visit.page.evaluate("location.hash") == "#metric=recall&k=5"
        visit.page.locator("nav a[href='#audit']").click()
        assert visit.page.evaluate("location.hash") == "#audit&metric=recall&k=5"
        shown, other = ranking_cells(visit.page), visit.context.new_page()
        other.goto(visit.page.url)
        other.wait_for_selector(DRAWN)
        assert ranking_cells(other) == shown
        other.goto(report.as_uri() + "#metric=nothing&k=7&group=%E0%A4%A")
        assert other.locator("#ranking-title").inner_text() == "The models on ndcg@10, against model 2"
        assert visit.messages == []


def test_words_are_explained_by_mouse_and_by_keyboard(browser, report):
    with Visit(browser, report) as visit:
        term, tip = visit.page.locator("#ranking .term").first, visit.page.locator("#tip")
        term.focus()
        assert tip.is_visible()
        assert term.get_attribute("aria-describedby") == "tip"
        assert "best possible one" in tip.inner_text()  # ndcg, from the registry
        visit.page.keyboard.press("Escape")
        assert not tip.is_visible()
        visit.page.locator(".tile .term").first.hover()
        assert tip.is_visible()
        term.focus()
        visit.page.keyboard.press("Enter")
        assert visit.page.locator(f"{term.get_attribute('href')} dd").is_visible()


def test_tables_are_cards_on_a_phone_and_hide_no_column(browser, report):
    with Visit(browser, report, viewport={"width": 390, "height": 800}) as visit:
        cells = visit.page.locator("#ranking tbody tr").nth(1).locator("td").all()
        heads = [cell.evaluate("td => getComputedStyle(td, '::before').content") for cell in cells]
        assert heads[:2] == ['"ndcg@10"', '"lift over model 2"']
        boxes = [cell.bounding_box() for cell in cells]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
        table = visit.page.locator("table.short:visible").first
        assert table.locator("tbody tr:visible").count() == 3
        table.locator("xpath=following-sibling::button").click()
        assert visit.page.locator("#users table tbody tr:visible").count() == 12


def test_the_inspector_shows_the_chosen_user(browser, report):
    lists, truth, *_ = world()
    with Visit(browser, report) as visit:
        page = visit.page
        page.locator("#why").select_option("worst")
        first = page.locator("#who").evaluate("who => who.selectedOptions[0].textContent")
        assert f"User {first}:" in page.locator("#person").inner_text()
        relevant = truth[int(first)]
        for at, (name, lists_by_user) in enumerate(reversed(lists.items())):  # best first
            part = page.locator(".person > div").nth(2 + at)
            assert name in part.locator("h4").inner_text()
            assert part.locator("li").count() == len(lists_by_user[int(first)])
            assert part.locator("li.hit").count() == sum(i in relevant for i in lists_by_user[int(first)])
        page.locator("#after").click()
        second = page.locator("#who").evaluate("who => who.selectedOptions[0].textContent")
        assert second != first
        assert f"User {second}:" in page.locator("#person").inner_text()
        page.locator("#before").click()
        assert f"User {first}:" in page.locator("#person").inner_text()


@pytest.mark.parametrize("width", [360, 414, 768])
def test_no_horizontal_scroll_on_small_screens(browser, report, hostile, width):
    for path in (report, hostile):
        with Visit(browser, path, viewport={"width": width, "height": 740}) as visit:
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
            visit.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1280), ("light", 390)])
def test_axe_finds_nothing_serious(browser, report, scheme, width):
    size = {"width": width, "height": 900}
    with Visit(browser, report, color_scheme=scheme, viewport=size, bypass_csp=True) as visit:
        visit.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        choose(visit, metric="recall")
        visit.page.locator("#decision .term").first.focus()
        assert visit.serious_findings() == []


def test_everything_can_be_reached_by_keyboard_and_the_page_can_be_skipped_into(browser, report):
    with Visit(browser, report) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.className") == "skip"
        visit.page.keyboard.press("Enter")
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.closest('main') !== null")


def test_tables_are_readable_without_scripts(browser, report):
    with Visit(browser, report, drawn=False, java_script_enabled=False) as visit:
        for title in ("Models and metrics", "Every comparison in full", "The numbers"):
            assert visit.page.get_by_text(title).first.is_visible()
        tables = visit.page.locator("table")
        assert tables.count() > 10
        assert all(table.is_visible() for table in tables.all())
        assert visit.page.locator("#decision .verdict").is_visible()
        assert visit.page.locator("#words dd").first.is_visible()
        for needs_script in ("#inspector", "#choices", "#chosen"):
            assert not visit.page.locator(needs_script).is_visible()
        assert visit.messages == []


def test_a_browser_that_cannot_unpack_the_charts_shows_the_tables(browser, report):
    context = browser.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("#person p")
    assert page.locator(".plot svg").count() == 0
    assert all(table.is_visible() for table in page.locator("main > section table").all())
    context.close()


def test_a_link_saves_the_table_from_disk(browser, report, tmp_path):
    with Visit(browser, report) as visit:
        with visit.page.expect_download() as download:
            visit.page.locator('a[download="summary.csv"]').click()
        download.value.save_as(tmp_path / "summary.csv")
        lines = (tmp_path / "summary.csv").read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("model,ndcg@10")
        assert len(lines) == 4


def test_a_chart_can_be_saved(browser, report, tmp_path):
    with Visit(browser, report) as visit:
        for name, start in (("Save SVG", b"<svg"), ("Save PNG", b"\x89PNG")):
            with visit.page.expect_download() as download:
                visit.page.get_by_role("button", name=name).first.click()
            download.value.save_as(tmp_path / "chart")
            assert (tmp_path / "chart").read_bytes().startswith(start)


def test_the_theme_can_be_chosen_and_follows_the_system_unless_it_is(browser, report):
    paper = "getComputedStyle(document.body).backgroundColor"
    with Visit(browser, report, color_scheme="dark") as visit:
        dark = visit.page.evaluate(paper)
        visit.page.locator("#theme").click()
        light = visit.page.evaluate(paper)
        visit.page.locator("#theme").click()
        assert (light, visit.page.evaluate(paper)) == ("rgb(255, 255, 255)", dark)
        assert dark != light


def test_printing_is_black_on_white_without_what_cannot_be_clicked(browser, report, tmp_path):
    with Visit(browser, report, color_scheme="dark") as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for selector in ("nav", ".inspector", ".files", ".save"):
            assert not visit.page.locator(selector).first.is_visible()
        assert visit.page.locator("#ranking").is_visible()
        assert visit.page.locator(".plot.paper svg").first.is_visible()
        assert not visit.page.locator("figure.wide .plot:not(.paper)").first.is_visible()
        document = visit.page.pdf(path=tmp_path / "report.pdf", format="A4")
        assert document.startswith(b"%PDF")


def test_a_printed_page_is_not_shrunk_and_its_letters_can_be_read(browser, report):
    """A browser shrinks a page that is wider than the paper: 182 mm of A4 are 688 pixels."""
    with Visit(browser, report, viewport={"width": 1440, "height": 900}) as visit:
        visit.page.emulate_media(media="print")
        visit.page.set_viewport_size({"width": 688, "height": 900})
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 688
        assert visit.page.locator("#conventions table").is_visible()  # folded on the screen
        least = visit.page.evaluate(
            """Math.min(...[...document.querySelectorAll('.plot svg')].filter((svg) => svg.clientWidth)
            .flatMap((svg) => [...svg.querySelectorAll('text')].map((text) =>
            parseFloat(getComputedStyle(text).fontSize) * svg.clientWidth / svg.viewBox.baseVal.width)))"""
        )
        assert 0.75 * least >= 8  # points
        tallest = visit.page.evaluate(
            """Math.max(...[...document.querySelectorAll('section')]
            .filter((one) => one.querySelector('figure') && !one.querySelector('table'))
            .map((one) => one.querySelector('figure').getBoundingClientRect().bottom
                          - one.getBoundingClientRect().top))"""
        )
        assert 0 < tallest < 940  # of the 950 pixels of a letter page, or the heading stands alone


def test_the_scripts_in_the_file_are_those_of_the_policy(report):
    """What the browser will run is what the policy names: nobody else's text."""
    import gzip
    import hashlib

    text = report.read_text(encoding="utf-8")
    named = set(re.findall(r"&#39;sha256-([^&]+)&#39;", re.search(r'Policy" content="([^"]+)"', text)[1]))
    packed = re.search(r'<script type="application/gzip" id="vega">(.*?)</script>', text)[1]
    library = gzip.decompress(base64.b64decode(packed))
    own = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    hashes = {
        base64.b64encode(hashlib.sha256(part).digest()).decode()
        for part in [library, *(one.encode() for one in own + style)]
    }
    assert hashes == named
    assert json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["config"]["aria"] is False
