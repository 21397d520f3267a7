"""SDF and CSDF: graphs, consistency, liveness, throughput, buffer sizes, and CNNs as dataflow."""

from .analysis import GraphAnalysis, analyse, analysis_to_dict
from .buffers.looped_schedule import ScheduleLoop, looped, schedule_text
from .buffers.minimum import Buffers, minimum_buffers
from .buffers.occupancy import peak_occupancy
from .checks.consistency import cycles, repetitions
from .checks.liveness import blocked
from .cnn.assignments import read_mapping, read_times
from .cnn.conversion import cnn_to_csdf, cnn_to_sdf
from .cnn.counts import phases
from .cnn.mapped import mapped_csdf
from .deployments.slots import deployed_csdf, fifo_slots, frame_period
from .formats.dot import dot
from .formats.reader import parse_graph, read_graph
from .formats.sdf3_text import sdf3
from .formats.text import from_json, to_json
from .graph import Actor, Channel, Graph, Rates, fold
from .throughput.latency import latency
from .throughput.pareto import Pareto, pareto
from .throughput.ratio import cycle_ratio, period
from .throughput.selftimed import SelfTimed, self_timed

__all__ = [
    "Actor", "Buffers", "Channel", "Graph", "GraphAnalysis", "Pareto", "Rates", "ScheduleLoop", "SelfTimed",
    "analyse", "analysis_to_dict", "blocked", "cnn_to_csdf", "cnn_to_sdf", "cycle_ratio", "cycles",
    "deployed_csdf", "dot", "fifo_slots", "fold", "frame_period", "from_json", "latency", "looped", "mapped_csdf",
    "minimum_buffers", "pareto", "parse_graph", "peak_occupancy", "period", "phases", "read_graph", "read_mapping",
    "read_times", "repetitions", "schedule_text", "sdf3", "self_timed", "to_json",
]  # fmt: skip
