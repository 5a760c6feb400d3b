"""Elements of a page, built as a tree: text can only become text."""

from __future__ import annotations

import base64
from xml.etree import ElementTree as ET

from probebench.kernel.page import visible

Element = ET.Element


def node(tag: str, *children: Element | str, **attributes: str) -> Element:
    """An element; text among the children goes first, attributes lose a final "_".

    Escaping is the serialiser's, and what is not printable is spelled out.
    """
    named = {key.rstrip("_").replace("_", "-"): visible(text) for key, text in attributes.items()}
    element = Element(tag, named)
    element.text = visible("".join(child for child in children if isinstance(child, str)))
    element.extend(child for child in children if not isinstance(child, str))
    return element


def png_uri(png: bytes) -> str:
    """A PNG file as an address that holds it whole."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def document(root: Element) -> str:
    """The text of a page whose element is ``root``."""
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html")
