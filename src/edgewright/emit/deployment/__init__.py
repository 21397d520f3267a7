"""C from a Deployment: a library that runs all parts on one device, in its arenas, and lets each start when it may.

from edgewright.emit.deployment import LibraryNames, emit_deployment
from edgewright.emit.deployment.trial import verify_library

library = emit_deployment(deployment, TARGETS["cortex-m4"], LibraryNames("app", {"a": "net_a", "b": "net_b"}))
verify_library(library).board.stack_bytes, library.files, library.arenas
"""

from .library import DeploymentLibrary, emit_deployment
from .names import LibraryNames

__all__ = ["DeploymentLibrary", "LibraryNames", "emit_deployment"]
