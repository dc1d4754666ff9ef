"""Which of the protocol's options an endpoint takes: asked for with all of them, and with fewer where it refuses."""

import re
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from agent.models.model import Schema

BOUNDED, STRICT, OBJECT, PLAIN = "json_schema with bounds", "json_schema", "json_object", "plain"
_FORMATS = (BOUNDED, STRICT, OBJECT, PLAIN)

# A grammar of strings with bounds keeps a small model from running on; OpenAI's strict mode takes no such bounds.
_BOUNDS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"})
_OF_FORMAT = re.compile(r"response_format|json_schema|json_object|schema|grammar|structured", re.IGNORECASE)


@frozen
class Dialect:
    """``counted`` asks for the usage at the end of the stream; ``limit`` is what the cap on tokens is called."""

    format: str = BOUNDED
    limit: str = "max_tokens"
    counted: bool = True

    def options(self, schema: Schema | None, tokens: int) -> dict[str, Any]:
        """What goes into the request beside the model and the messages."""
        options: dict[str, Any] = {self.limit: tokens, "stream": True}
        if self.counted:
            options["stream_options"] = {"include_usage": True}
        if schema is None or self.format == PLAIN:
            return options
        if self.format == OBJECT:
            return {**options, "response_format": {"type": "json_object"}}
        shape = schema.shape if self.format == BOUNDED else without_bounds(schema.shape)
        wanted = {"name": schema.name, "schema": shape, "strict": True}
        return {**options, "response_format": {"type": "json_schema", "json_schema": wanted}}

    def simpler(self, status: int, said: str, schema: Schema | None) -> "Dialect | None":
        """What to try after the endpoint refused a request with these words; None where its options are not to
        blame."""
        if status not in (400, 415, 422, 500, 501):
            return None
        if "max_completion_tokens" in said and self.limit == "max_tokens":
            return evolve(self, limit="max_completion_tokens")
        if "max_tokens" in said and self.limit == "max_completion_tokens":
            return None
        if "stream_options" in said and self.counted:
            return evolve(self, counted=False)
        formatted = schema is not None and self.format != PLAIN
        if formatted and (status in (400, 415, 422) or _OF_FORMAT.search(said)):
            return evolve(self, format=_FORMATS[_FORMATS.index(self.format) + 1])
        if status in (400, 415, 422) and self.counted:
            return evolve(self, counted=False)
        return None


def without_bounds(shape: Any) -> Any:
    """A JSON Schema without bounds on lengths and numbers."""
    if isinstance(shape, Mapping):
        return {key: without_bounds(value) for key, value in shape.items() if key not in _BOUNDS}
    return [without_bounds(value) for value in shape] if isinstance(shape, list) else shape
