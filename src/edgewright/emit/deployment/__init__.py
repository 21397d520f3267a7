"""C from a Deployment: a library that runs all parts on one device, in its arenas, and lets each start when it may.

library = emit_deployment(deployment, target, LibraryNames("app", {"a": "net_a", "b": "net_b"}))
verify_library(library)
write_folder(folder, deployment_package(library, "demo", version), {})
"""

from .library import DeploymentLibrary, emit_deployment
from .names import LibraryNames

__all__ = ["DeploymentLibrary", "LibraryNames", "emit_deployment"]
