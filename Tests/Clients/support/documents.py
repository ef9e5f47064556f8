"""The documentation pages, and the code that they show."""

import re

from support import ROOT

PAGES = ROOT / "Documentation"


def blocks(text, language):
    """Returns the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
