"""Self-contained HTML pages: one file, no network access, and a content security policy that enforces this.

All text from data goes through `escape`; drawings escape their text themselves.
"""

import base64
import functools
import hashlib
from collections.abc import Iterable, Sequence
from html import escape as escape_html
from importlib import resources

from tsgkit.drawing._svg import FONT, tree_style, visible

STYLE = (
    ":root{color-scheme:light dark;--line:#d8dde3;--ground:#f6f7f9}"
    "@media (prefers-color-scheme:dark){:root{--line:#343a42;--ground:#1d2127}}"
    f"body{{margin:0 auto;max-width:75rem;padding:1rem 1.25rem 4rem;font:16px/1.55 {FONT};color:var(--ink);"
    "background:var(--paper)}"
    "h1{font-size:1.7rem;line-height:1.25;margin:1rem 0 .3rem}h2{font-size:1.3rem;margin:2.6rem 0 .6rem;"
    "border-bottom:1px solid var(--line);padding-bottom:.25rem}h3{font-size:1.05rem;margin:1.6rem 0 .4rem}"
    "p{max-width:48rem;margin:.4rem 0}a{color:var(--hue0)}code{font-size:.92em;overflow-wrap:anywhere}"
    ".quiet{color:var(--faint)}.scroll{overflow-x:auto;padding:.2rem 0}"
    "nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;padding:0;margin:.8rem 0}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0}"
    "th,td{padding:.2rem .8rem .2rem 0;text-align:right;vertical-align:top;white-space:nowrap}"
    "th{font-weight:600;border-bottom:1px solid var(--line)}"
    "th.text,td.text{text-align:left;white-space:normal}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,17rem),1fr));gap:.8rem}"
    ".card{border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem;overflow:hidden}"
    ".card svg{max-width:100%;height:auto}.card p{margin:.2rem 0;font-size:.9rem}.card code{font-size:.8rem}"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1rem}"
    ".pair>div,.plots>div{overflow-x:auto;min-width:0}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:1rem}"
    ".plots svg{max-width:100%;height:auto}.plots>.large{grid-column:1/-1}.plots>.large svg{width:100%}"
    "[data-plot] .values{margin:0;min-height:1.6em;font-size:.9rem;font-variant-numeric:tabular-nums}"
    "[data-plot] svg:focus-visible{outline:3px solid var(--hue0);outline-offset:2px}"
    "button{float:right;font:inherit;font-size:.85rem;color:inherit;background:none;border:1px solid var(--faint);"
    "border-radius:.4rem;padding:.15rem .6rem;min-height:1.9rem;cursor:pointer}"
    "button[aria-pressed=true]{background:var(--ground)}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,9.5rem),1fr));gap:.7rem;margin:1rem 0}"
    ".tiles>div{border:1px solid var(--line);border-radius:.5rem;padding:.5rem .8rem;background:var(--ground)}"
    ".tiles dt{font-size:.85rem;color:var(--faint)}"
    ".tiles dd{margin:0;font-size:1.5rem;font-variant-numeric:tabular-nums}"
    ".tiles .quiet{font-size:.85rem;display:block}"
    ".hierarchy td{padding-top:0;padding-bottom:0}.hierarchy .name{text-align:left;padding-right:1.2rem}"
    ".rung{display:inline-block;width:1.1rem;height:1.7em;vertical-align:middle;border-left:2px solid var(--hue)}"
    "details{margin:.5rem 0}summary{cursor:pointer;padding:.2rem 0}"
    ".right{color:var(--right)}.wrong{color:var(--wrong)}.missed{color:var(--missed)}"
    "mark{background:none;color:inherit;font-weight:700;text-decoration:underline;text-underline-offset:.2em}"
)


def escape(text: object) -> str:
    """Any value as escaped text for a page.

    Examples
    --------
    >>> escape("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return escape_html(visible(str(text)))


@functools.cache
def plot_script() -> str:
    """The script of plots, as it stands in the page."""
    return "\n" + resources.files("tsgkit.report").joinpath("static", "report.js").read_text("utf-8")


def source_of(text: str) -> str:
    """An inline style sheet or script as a source of a content security policy: this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def html_page(title: str, body: Iterable[str]) -> str:
    """A complete page with the given parts, which must be HTML.

    The policy allows this style sheet and, on a page with plots, their script: nothing else can run, and nothing is
    loaded.
    """
    style, content = STYLE + tree_style(), "".join(body)
    script = plot_script() if " data-plot=" in content else ""
    scripts = f" script-src {source_of(script)};" if script else ""
    policy = f"default-src 'none'; style-src {source_of(style)};{scripts} base-uri 'none'; form-action 'none'"
    if script:
        script = f"\n<script>{script}</script>"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<main>\n{content}\n</main>{script}\n</body>\n</html>\n"
    )


def tiles(facts: Iterable[tuple[str, str, str]]) -> str:
    """Figures to be seen at once: of each its name, its value, and what else to say about it."""
    parts = []
    for name, value, note in facts:
        below = f'<span class="quiet">{escape(note)}</span>' if note else ""
        parts.append(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}{below}</dd></div>")
    return f'<dl class="tiles">{"".join(parts)}</dl>'


def table(head: Sequence[str], rows: Iterable[Sequence[object]], n_text: int = 1) -> str:
    """A table; the first `n_text` columns are text, the others numbers."""
    classes = [' class="text"' if number < n_text else "" for number in range(len(head))]
    parts = ["<table><thead><tr>"]
    parts += [f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(head, classes, strict=True)]
    parts.append("</tr></thead><tbody>")
    for row in rows:
        cells = [f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, classes, strict=True)]
        parts.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll" tabindex="0">{"".join(parts)}</tbody></table></div>'
