"""Closed plans: every call has its kernel and its scratch, and what prints them decides nothing more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..network import Network
from ..platform.target import Target
from ..program import Plan
from ..program.nesting import Nesting
from ..program.options import Options
from .check import checked_kernels
from .sites import NetworkFacts, Sites


@dataclass(frozen=True)
class ClosedPlan:
    """A plan whose kernels suit its target, with the weights of its network."""

    plan: Plan
    facts: NetworkFacts

    @classmethod
    def of(
        cls,
        plan: Plan,
        target: Target,
        network: Network | None = None,
        options: Options | None = None,
        nesting: Nesting | None = None,
    ) -> ClosedPlan:
        """A plan whose kernels were selected for this target by these options; they are checked."""
        facts = facts_of(plan, target, network, options, nesting)
        assert plan.is_selected_for(target, facts.options), "kernels are to be selected before a plan is printed"
        checked_kernels(plan, facts)
        return cls(plan, facts)

    @property
    def sites(self) -> Sites:
        return Sites(self.plan, self.facts)


def facts_of(
    plan: Plan,
    target: Target,
    network: Network | None = None,
    options: Options | None = None,
    nesting: Nesting | None = None,
) -> NetworkFacts:
    """The network of a plan on a target, with the weights of `network` if one is given."""
    whole = replace(plan.network, constants=network.constants) if network else plan.network
    return NetworkFacts(whole, target, options or Options(), nesting=nesting)
