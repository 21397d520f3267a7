"""What a token counts as: one, or its bytes."""

from __future__ import annotations

from typing import Literal

from ..graph import Channel

Weight = Literal["tokens", "bytes"]


def price(channel: Channel, weight: Weight) -> int:
    return channel.token_bytes if weight == "bytes" else 1
