"""Self-contained pages: everything from data is escaped, and the policy allows the style sheet and nothing else."""

import base64
import hashlib
import re
from html.parser import HTMLParser

from tsgkit.report._page import escape, html_page, table

WILD = "<script>alert('1')</script> & \x00\"quoted\""


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Tags()
    reader.feed(page)
    return reader


def test_text_is_escaped():
    reader = read(f'<p title="{escape(WILD)}">{escape(WILD)}</p>')
    assert reader.tags == ["p"]
    assert "".join(reader.text) == WILD.replace("\x00", "\ufffd")


def test_the_policy_allows_the_style_sheet_of_the_page_alone():
    page = html_page(WILD, ["<p>text</p>"])
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert "script" not in read(page).tags


def test_a_table_has_text_and_numbers():
    page = table(("Label", "Count"), [("<NP>", 3), ("VP", 12)])
    reader = read(page)
    assert reader.tags.count("td") == 4
    assert page.count('class="text"') == 3
    assert "&lt;NP&gt;" in page
