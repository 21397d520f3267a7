"""The page of scenarios that switch."""
from ..adaptive.scenarios import AdaptiveApplication
def adaptive_page(application: AdaptiveApplication) -> str:
    return ""
