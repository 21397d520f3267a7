"""Parts of single layers: every operator, any region, in every arithmetic; or the reason why not."""

from __future__ import annotations
