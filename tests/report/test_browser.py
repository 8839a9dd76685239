"""The web page and the report in a real Chromium: typed into, clicked, looked at, and without a complaint.

Pictures of what was seen are kept in build/screenshots; those of the manual are made by the same tests
(``make screenshots``), which then train their models longer.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from report.browser import DESKTOP, PHONE, Browser

from tsgkit._tools import report as report_command
from tsgkit._tools import train as train_command
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.treebank._brackets import format_tree

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

SENTENCE = "My sister wants a bag of flour and a dozen eggs."
WORDS = ["My", "sister", "wants", "a", "bag", "of", "flour", "and", "a", "dozen", "eggs", "."]
FOR_MANUAL = bool(os.environ.get("TSGKIT_SCREENSHOTS"))
OPTIONS = {
    "tsg": ["--iterations=400"] if FOR_MANUAL else ["--iterations=20", "--average=2"],
    "insertion": ["--iterations=200", "--average=1"] if FOR_MANUAL else ["--iterations=20", "--average=1"],
    "srtsg": [] if FOR_MANUAL else ["--splits=2", "--split-iterations=4", "--joint-iterations=6", "--average=1"],
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Models of three kinds."""
    folder = tmp_path_factory.mktemp("browser")
    found = {}
    for kind, options in OPTIONS.items():
        found[kind] = folder / f"{kind}.model"
        command = [f"--model={kind}", "--quiet", *options, f"--output={found[kind]}", "village:train"]
        assert train_command.main(command) == 0
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@contextmanager
def serving(*arguments):
    """``tsgkit serve`` as a process of its own; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tsgkit", "serve", f"--port={port}", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert f"http://127.0.0.1:{port}/" in line, line
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.communicate(timeout=600)


@pytest.fixture(scope="module")
def address(trained):
    pytest.importorskip("flask", reason="flask is not installed")
    pytest.importorskip("waitress", reason="waitress is not installed")
    with serving(trained["tsg"], "--max-length=40") as found:
        yield found


@pytest.fixture
def page(browser, address):
    """The page, fresh; at the end, the console must be empty."""
    browser.open(address)
    yield Shown(browser)
    assert browser.complaints() == []


class Shown:
    """The page in the browser, by what a person does."""

    def __init__(self, browser):
        self.browser, self.driver = browser, browser.driver

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def wait(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.05)
        pytest.fail(f"nothing happened; the page says {self.one('body').text!r}")

    def ask(self, text):
        """Type a sentence and press Enter."""
        field = self.one("#sentence")
        self.driver.execute_script("arguments[0].value = ''", field)
        field.send_keys(text + "\n")
        self.wait(lambda: "Parsing" not in self.one("#status").text)

    def parse(self, text=SENTENCE):
        self.ask(text)
        self.wait(lambda: self.all("#picture svg"))

    def labels(self, kind=".node"):
        """The text of all nodes of the picture, or of those of a kind."""
        script = "return [...document.querySelectorAll(arguments[0])].map(n => n.lastElementChild.firstChild.data)"
        return self.driver.execute_script(script, f"#picture {kind}")

    def press(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)


def shown_percent(text):
    """The number in a percentage, which has its name before it for those who listen."""
    return float(text.split()[-2].removeprefix("<"))


def test_type_parse_and_see_the_tree(page, trained):
    page.parse()
    parse = Parser(trained["tsg"]).analyse(WORDS, k=5)
    # In the parser's order; its choice is shown, and the most probable tree is marked.
    assert [code.text for code in page.all("#trees code")] == [format_tree(tree) for tree in parse.trees]
    likeliest = max(range(len(parse.trees)), key=lambda rank: parse.log_probabilities[rank])
    (marked,) = [label for label in page.all("#trees label") if "★" in label.text]
    assert marked.find_element("css selector", "code").text == format_tree(parse.trees[likeliest])
    assert page.one("#trees label:has(:checked) code").text == format_tree(parse.tree)
    assert page.labels(".word") == WORDS
    assert page.one("#tokens").get_attribute("value") == " ".join(WORDS)
    shares, probabilities = (
        [shown_percent(each.text) for each in page.all(f"#trees label .{name}")] for name in ("share", "probability")
    )
    assert len(shares) == len(probabilities) == len(parse.trees) > 1
    assert 0 < sum(shares) <= 100.5
    assert 0 < sum(probabilities) <= 100.5
    assert shares == sorted(shares, reverse=True)
    expected = Parser(trained["tsg"]).analyse(WORDS, k=5, confidence=True)
    assert shares == pytest.approx([100 * share for share in expected.shares], abs=0.1)
    assert probabilities == pytest.approx([100 * share for share in expected.probabilities], abs=0.1)
    assert [each.text for each in page.all("#trees .head span")] == ["", "share", "probability"]
    for word in ("Share:", "Probability:", "★"):
        assert word in page.one("#trees-note").text
    assert "odds" not in page.one("#trees-note").text  # as a tsg has no model of labels
    page.browser.picture("serve-tree")


def test_another_of_the_best_trees(page):
    page.parse()
    before = page.labels()
    page.one("#trees input:not(:checked)").click()
    assert page.labels() != before
    assert page.one("#trees label:has(:checked) code").text != page.one("#trees label code").text


def test_the_derivation_has_colours_and_says_why(page):
    page.parse()
    assert page.all("#picture .halo") == []
    page.one("#tab-derivation").click()
    halos = page.all("#picture .halo")
    fragments = page.all("#why > li")
    assert len(halos) == len(fragments) > 3
    colours = {halo.value_of_css_property("stroke") for halo in halos}
    assert len(colours) >= min(len(halos), 6)
    assert all("×" in each.text for each in fragments)
    assert page.all("#why mark")
    page.driver.execute_script("document.querySelector('.bar').scrollIntoView()")
    page.browser.picture("serve-derivation")
    first = page.one('#picture .node[data-step="0"]')
    page.driver.execute_script("arguments[0].dispatchEvent(new MouseEvent('click'))", first)
    assert "lit" in page.one("#fragment-0").get_attribute("class")


def test_dependencies_are_arcs_and_a_table(page):
    page.parse()
    assert not page.one("#dependencies").is_displayed()
    page.one("#tab-dependencies").click()
    assert (
        page.driver.execute_script(
            "return [...document.querySelectorAll('#picture .word')].map(word => word.textContent)"
        )
        == WORDS
    )
    assert len(page.all("#picture path")) == len(WORDS)
    assert "head rules" in page.one("#hint").text
    page.driver.execute_script("document.querySelector('.bar').scrollIntoView()")
    page.browser.picture("serve-dependencies")
    page.one("#dependencies summary").click()
    rows = [row.text for row in page.all("#dependencies tbody tr")]
    assert len(rows) == len(WORDS)
    assert rows[2] == "3 wants VBZ – root"
    assert rows[1] == "2 sister NN 3 wants NP"
    page.one("#tab-tree").click()
    assert not page.one("#dependencies").is_displayed()


def test_what_else_could_stand_at_a_node(page):
    page.parse()
    nodes = page.driver.execute_script("return state.answer.trees[0].nodes")
    unsure = [number for number, node in enumerate(nodes) if node and node["posterior"] < 0.99]
    page.driver.execute_script(
        "document.querySelector(`#picture .node[data-node='${arguments[0]}']`).dispatchEvent(new MouseEvent('click'))",
        unsure[-1],
    )
    assert page.one("#node-section").is_displayed()
    assert "posterior" in page.one("#node-title").text
    rows = page.all("#node tbody tr")
    assert rows or "No alternative" in page.one("#node").text
    page.driver.execute_script("document.querySelector('#picture').scrollIntoView()")
    page.browser.picture("serve-node")


def test_words_can_be_changed(page):
    page.parse("don't stop the bus")
    tokens = page.one("#tokens")
    assert tokens.get_attribute("value") == "do n't stop the bus"
    tokens.clear()
    tokens.send_keys("don't stop the bus !\n")
    page.wait(lambda: "don't" in page.labels())
    assert page.labels()[-1] == "!"
    # A reload brings back what was asked last.
    page.driver.refresh()
    page.wait(lambda: page.all("#picture svg"))
    assert page.one("#tokens").get_attribute("value") == "don't stop the bus !"


def test_problems_are_shown_and_pass(page):
    for text, message in (("", "There are no words"), ("word " * 41, "at most 40")):
        page.ask(text)
        problem = page.one("#problem")
        page.wait(problem.is_displayed)
        assert message.lower() in problem.text.lower()
        assert not page.one("#result").is_displayed()
    page.browser.picture("serve-problem")
    # An error after an answer leaves nothing of the answer.
    page.parse()
    assert not page.one("#problem").is_displayed()
    page.ask("word " * 41)
    page.wait(page.one("#problem").is_displayed)
    assert not page.one("#result").is_displayed()
    assert not page.one("#tokens-form").is_displayed()
    assert page.all("#picture svg, #trees label, #why li") == []
    # The refusals stand in the console as failed requests, and nothing else does.
    complaints = page.browser.complaints()
    assert len(complaints) == 3
    assert all("/api/parse" in each and ("400" in each or "413" in each) for each in complaints)
    page.parse()
    assert not page.one("#problem").is_displayed()


def test_examples_are_compared_with_their_gold_trees(page):
    page.wait(lambda: page.all("#examples button"))
    page.browser.picture("serve-start")
    example = page.all("#examples button")[2]
    words = example.text
    example.click()
    page.wait(lambda: page.all("#picture svg"))
    assert " ".join(page.labels(".word")) == words
    assert not page.one("#examples-section").is_displayed()
    assert page.one("#gold-score").is_displayed()
    page.one("#tab-gold").click()
    assert " ".join(page.labels(".word")) == words
    assert "gold" in page.one("#hint").text
    assert all("F1" in label.text for label in page.all("#trees label"))
    page.browser.picture("serve-gold")


def test_a_gold_tree_of_ones_own(page):
    page.parse()
    assert not page.one("#tab-gold").is_displayed()
    other = page.all("#trees code")[-1].text
    page.one("#gold-details summary").click()
    page.one("#gold").send_keys(other)
    page.one("#sentence").click()  # leaves the field
    page.wait(lambda: page.all("#trees .f1"))
    scores = [each.text for each in page.all("#trees .f1")]
    assert "F1 100.0" in scores
    assert page.one("#tab-gold").is_displayed()
    assert "✗" in page.one("#picture").text
    page.one("#gold").send_keys(")")
    page.one("#sentence").click()
    page.wait(lambda: "gold tree:1:" in page.one("#problem").text)
    assert not page.one("#result").is_displayed()
    assert len(page.browser.complaints()) == 1


def test_two_sentences_in_a_line_are_told_apart_by_the_user(page):
    page.one("#sentence").send_keys("The old man smiled. She will come.\n")
    page.wait(lambda: "A line is one sentence: press Shift-Enter" in page.one("#status").text)
    field = page.one("#sentence")
    field.clear()
    field.send_keys("The old man smiled .\n")
    page.wait(lambda: "5 words" in page.one("#status").text)
    assert "A line" not in page.one("#status").text


def test_several_sentences(page):
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415 - optional

    field = page.one("#sentence")
    field.send_keys("The old man smiled .", Keys.SHIFT + Keys.ENTER + Keys.NULL)
    field.send_keys("word " * 41, Keys.SHIFT + Keys.ENTER + Keys.NULL)
    field.send_keys("She will come .", Keys.ENTER)
    page.wait(lambda: "3 sentences, 1 with an error" in page.one("#status").text)
    assert page.labels(".word") == ["The", "old", "man", "smiled", "."]
    buttons = page.all("#sentences button")
    assert len(buttons) == 3
    assert buttons[0].get_attribute("aria-current") == "true"
    buttons[2].click()
    assert page.labels(".word") == ["She", "will", "come", "."]
    page.all("#sentences button")[1].click()
    page.wait(page.one("#problem").is_displayed)
    assert not page.one("#result").is_displayed()
    page.all("#sentences button")[0].click()
    assert not page.one("#problem").is_displayed()
    page.browser.picture("serve-sentences")
    tokens = page.one("#tokens")
    tokens.clear()
    tokens.send_keys("The young man smiled .\n")
    page.wait(lambda: "young" in page.labels())
    assert len(page.all("#sentences button")) == 3
    page.wait(lambda: "3 sentences" in page.one("#status").text)
    assert len(page.browser.complaints()) == 2


@pytest.fixture(scope="module")
def axe():
    """The accessibility checker, where it was fetched: `npm pack axe-core`, unpacked in build/axe."""
    path = Path(__file__).parents[2] / "build" / "axe" / "package" / "axe.min.js"
    if not path.exists():
        pytest.skip("axe-core is not in build/axe: make build/axe fetches it with npm")
    return path.read_text("utf-8")


def violations(driver, axe):
    """What axe-core finds on the page that is shown, each with its first place."""
    driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # for its script only
    driver.execute_script(axe)
    script = (
        "const done = arguments[arguments.length - 1];"
        "axe.run().then((found) => done([found.passes.length, found.violations]))"
    )
    n_passed, found = driver.execute_async_script(script)
    assert n_passed > 15  # it has looked at the page
    return [(each["id"], each["nodes"][0]["html"][:100]) for each in found]


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False)])
def test_the_page_is_accessible(browser, address, axe, size, dark):
    browser.open(address, size=size, dark=dark)
    page = Shown(browser)
    page.wait(lambda: page.all("#examples button"))
    assert violations(page.driver, axe) == []
    page.all("#examples button")[1].click()
    page.wait(lambda: page.all("#picture svg"))
    assert violations(page.driver, axe) == []
    page.driver.execute_script("document.querySelector('#picture .node').dispatchEvent(new MouseEvent('click'))")
    page.one("#gold-details summary").click()
    for view in ("derivation", "gold", "dependencies"):
        page.one(f"#tab-{view}").click()
        if view == "dependencies":
            page.one("#dependencies summary").click()
        assert violations(page.driver, axe) == []
    page.one("#sentence").send_keys("\n")
    page.driver.execute_script("find('sentence').value = 'a b\\nc d'; find('ask').requestSubmit()")
    page.wait(lambda: "2 sentences" in page.one("#status").text)
    assert violations(page.driver, axe) == []


def test_the_report_is_accessible(browser, trained, axe, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    output = tmp_path / "report.html"
    for chosen in (["srtsg"], ["tsg", "srtsg"]):
        command = ["--quiet", "--dev=village:dev", "--worst=2", f"--output={output}"]
        assert report_command.main([*command, *(str(trained[kind]) for kind in chosen)]) == 0
        for size, dark in ((DESKTOP, False), (DESKTOP, True), (PHONE, False)):
            browser.open(output.as_uri(), size=size, dark=dark)
            assert violations(browser.driver, axe) == []
        output.unlink()


def test_markup_is_shown_as_text(page):
    page.parse("<b>bold</b> <script>alert(1)</script> & 'x'")
    assert page.all("#picture script, #picture b, #why b, #why script") == []
    assert "script" in " ".join(page.labels())


def test_by_keyboard_alone(page):
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415 - optional

    page.wait(lambda: page.driver.switch_to.active_element.get_attribute("id") == "sentence")
    page.press("The old man smiled .", Keys.ENTER)
    page.wait(lambda: page.all("#picture svg"))
    for _ in range(30):
        page.press(Keys.TAB)
        if page.driver.switch_to.active_element.get_attribute("id") == "tab-tree":
            break
    page.press(Keys.ARROW_RIGHT)
    page.wait(lambda: page.all("#picture .halo"))
    page.press(Keys.ARROW_LEFT)
    for _ in range(30):
        page.press(Keys.TAB)
        if page.driver.switch_to.active_element.get_attribute("data-node"):
            break
    page.press(Keys.ENTER)
    page.wait(lambda: page.one("#node-title").text.startswith("TOP “"))


def test_copies(page):
    """What is copied is taken where the browser would put it; pictures are real ones."""
    page.parse()
    page.one("#tab-derivation").click()
    page.driver.execute_script(
        "window.copied = [];"
        "navigator.clipboard.writeText = async (text) => { window.copied.push(text); };"
        "navigator.clipboard.write = async ([item]) => {"
        " const blob = await item.getType('image/png');"
        " window.copied.push([...new Uint8Array(await blob.arrayBuffer())].slice(0, 24)); };"
    )
    for number, form in enumerate(("brackets", "svg", "png", "latex", "conllu"), start=1):
        page.one(f"[data-copy={form}]").click()
        page.wait(lambda number=number: page.driver.execute_script("return window.copied.length") == number)
    brackets, svg, png, latex, conllu = page.driver.execute_script("return window.copied")
    assert brackets == page.one("#trees label:has(:checked) code").text
    assert svg.startswith("<svg ")
    assert "prefers-color-scheme:dark" in svg
    assert bytes(png[:8]) == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(bytes(png[16:20])) > 300
    assert "\\begin{forest}" in latex
    assert conllu.splitlines()[0] == f"# text = {' '.join(WORDS)}"
    page.one("#tab-dependencies").click()
    page.one("[data-copy=latex]").click()
    page.wait(lambda: page.driver.execute_script("return window.copied.length") == 6)
    assert "\\begin{dependency}" in page.driver.execute_script("return window.copied[5]")


@pytest.mark.parametrize(("name", "size", "dark"), [("dark", DESKTOP, True), ("phone", PHONE, False)])
def test_dark_and_narrow(browser, address, name, size, dark):
    browser.open(address, size=size, dark=dark)
    page = Shown(browser)
    page.wait(lambda: page.all("#examples button"))
    assert browser.wide() <= 0
    page.all("#examples button")[2].click()
    page.wait(lambda: page.all("#picture svg"))
    for view in ("tree", "derivation", "dependencies", "gold"):
        page.one(f"#tab-{view}").click()
        assert browser.wide() <= 0, view
    page.parse()
    page.one("#tab-derivation").click()
    paper = page.one("body").value_of_css_property("background-color")
    assert (paper == "rgba(255, 255, 255, 1)") != dark
    if size == PHONE:
        page.driver.execute_script("document.querySelector('.bar').scrollIntoView()")
    browser.picture(f"serve-{name}")
    assert browser.complaints() == []


def test_it_loads_within_a_second(browser, address):
    """The best of some, since the machine may be busy with other things."""
    times = []
    for _ in range(5):
        browser.open(address)
        # The end of loading is written down when the browser is done with what belongs to it.
        script = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
        times.append(Shown(browser).wait(lambda script=script: browser.driver.execute_script(script)))
    assert 0 < min(times) < 1000


def test_several_models(browser, trained):
    pytest.importorskip("waitress", reason="waitress is not installed")
    with serving(trained["tsg"], trained["srtsg"]) as address:
        browser.open(address)
        page = Shown(browser)
        page.parse()
        assert page.one("#models").text == "tsg.model (tsg) × srtsg.model (srtsg)"
        option = page.all("#model option")[1]
        option.click()
        script = "return [...document.querySelectorAll('#why code')].some(code => /-[01]/.test(code.textContent))"
        page.wait(lambda: page.driver.execute_script(script))
        assert "odds of its labels" in page.one("#trees-note").text
        assert browser.complaints() == []
        about = json.load(urllib.request.urlopen(f"{address}api/about"))
        assert len(about["models"]) == 2


def read_plot(page):
    """Values by the keyboard and under the pointer, and a larger plot."""
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415 - optional

    plot = page.one("#training [data-plot] svg")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", plot)
    values = page.one("#training [data-plot] .values")
    page.press(Keys.HOME)
    first = values.text
    page.press(Keys.ARROW_RIGHT)
    assert (first.split(":")[0], values.text.split(":")[0]) != ("", first.split(":")[0])
    script = (
        "const box = arguments[0].getBoundingClientRect();"
        "arguments[0].dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 30, clientY: box.top + 30}))"
    )
    page.driver.execute_script(script, plot)
    last = int(values.text.split(":")[0].split()[-1])
    assert last > int(first.split(":")[0].split()[-1])
    before = plot.rect["width"]
    page.one("#training [data-plot] button").click()
    assert plot.rect["width"] > before
    page.one("#training [data-plot] button").click()


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_report(browser, trained, tmp_path, kind):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    output = tmp_path / "report.html"
    chains = [str(trained[kind])]
    assert report_command.main(["--quiet", "--dev=village:dev", f"--output={output}", *chains]) == 0
    for name, size, dark in (("", DESKTOP, False), ("-dark", DESKTOP, True), ("-phone", PHONE, False)):
        browser.open(output.as_uri(), size=size, dark=dark)
        assert browser.wide() <= 0
        assert browser.complaints() == []
        browser.picture(f"report-{kind}{name}")
    page = Shown(browser)
    browser.open(output.as_uri())
    assert len(page.all(".plots svg")) >= 4
    labels = Model.load(trained[kind]).grammar.labels
    drawn = page.driver.execute_script("return [...document.querySelectorAll('.tsg text')].map(t => t.textContent)")
    assert {"NP", "VP"} <= {label for label in labels if label in drawn}
    strokes = {halo.value_of_css_property("stroke") for halo in page.all("#derivations .halo")[:12]}
    assert len(strokes) > 3
    if kind == "insertion":
        assert page.all("#derivations .badge")
    # What matters most stands on top: no scrolling to the score.
    tile = page.one(".tiles dd").rect
    assert tile["y"] + tile["height"] < DESKTOP[1]
    read_plot(page)
    for section in ("derivations", "worst", "subcategories", "auxiliary"):
        if page.all(f"#{section}"):
            page.driver.execute_script("document.getElementById(arguments[0]).scrollIntoView()", section)
            browser.picture(f"report-{kind}-{section}")
