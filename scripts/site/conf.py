"""Sphinx makes the site from the same Markdown files that code hosts show."""
import os
import re
from pathlib import Path

project = html_title = "Semel"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # outputs are not always of one language
html_theme = "furo"
html_copy_source = html_show_sphinx = html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
smartquotes = False  # help texts and headers are quoted as they are
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))

docs = Path(__file__).resolve().parents[2] / "docs"
link = re.compile(r"\]\(<?([^)\s#>:]+)(#[^)\s>]*)?>?\)")
fence = re.compile(r"(^ *```.*?^ *```\s*?$|`[^`\n]+`)", re.M | re.S)


def links_to_files(text, page):
    """Links that lead out of the pages lead to the files on the code host."""

    def elsewhere(m):
        target = os.path.normpath(page.parent / m[1])
        if m[1].endswith(".md") and Path(target).is_relative_to(docs) or m[1].endswith((".png", ".svg")):
            return m[0]
        return f"](https://github.com/semel-go/semel/blob/main/{os.path.relpath(target, docs.parent)}{m[2] or ''})"

    parts = fence.split(text)
    return "".join(link.sub(elsewhere, part) if i % 2 == 0 else part for i, part in enumerate(parts))


def navigation(text):
    """The sections of the index, as the navigation."""
    trees = []
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        caption, _, rest = section.partition("\n")
        pages = re.findall(r"^- .*?\[([^\]]+)\]\((?!\.\.)([^)#]+)\.md\)", rest, re.M)
        lines = [f"{name.replace('`', '')} <{path}>" for name, path in pages]
        trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *lines, "```"]))
    return "\n\n".join(trees)


def read(app, docname, source):
    page = docs / f"{docname}.md"
    text = source[0]
    if docname == "README":
        text += "\n" + navigation(text)
    if docname == "decisions/README":
        text += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    source[0] = links_to_files(text, page)


def setup(app):
    app.connect("source-read", read)
