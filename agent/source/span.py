"""Half-open byte ranges, the one unit of position below the editor."""

from attrs import frozen


@frozen(order=True)
class Span:
    """Bytes ``start <= offset < end`` of a document's text."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def contains(self, other: "Span") -> bool:
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: "Span") -> bool:
        return self.start < other.end and other.start < self.end
