"""Graphs as files: SDF3 XML, JSON and DOT."""
