"""A page of HTML as a tree, for tests of what it shows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input", "img", "source", "br", "hr", "link"}


@dataclass
class Node:
    """An element with its attributes and its children, which are elements and texts."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Node | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text in it, with single spaces."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            yield from [child] if isinstance(child, str) else child._texts()

    @property
    def classes(self) -> list[str]:
        """The names of its class."""
        return self.attributes.get("class", "").split()

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def number(self, name: str) -> float:
        """Return an attribute as a number."""
        return float(self.attributes[name])

    def all(self, tag: str = "", within: str = "", **attributes: str) -> Iterator["Node"]:
        """Yield the elements in it with a tag, a name of their class and attributes, in their order."""
        for child in self.children:
            if isinstance(child, Node):
                fits = (not tag or child.tag == tag) and (not within or within in child.classes)
                if fits and attributes.items() <= child.attributes.items():
                    yield child
                yield from child.all(tag, within, **attributes)

    def one(self, tag: str = "", within: str = "", **attributes: str) -> "Node":
        """Return the only one of these elements."""
        (result,) = self.all(tag, within, **attributes)
        return result


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def tree_of(html: str) -> Node:
    """Parse a page. AssertionError where an element is not closed."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    (root,) = reader.open
    return root
