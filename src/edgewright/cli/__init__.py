"""The edgewright command: each verb parses, calls one public function, prints."""

from .main import main

__all__ = ["main"]
