"""Parts of networks: random ones in random parts, halos, and what is asked wrongly."""

from __future__ import annotations
