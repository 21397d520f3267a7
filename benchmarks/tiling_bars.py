"""What the figures of `tiling.py` and `search_growth.py` are held against: bars, and what others have published."""

from __future__ import annotations

from dataclasses import dataclass

from memory import PUBLISHED

QUANTISED = (
    ", input quantised"  # what a model's name ends with when it takes integers where the file takes real numbers
)

# Total RAM in bytes, everything counted, at 1.05 times the MACs at most: input held whole, input pulled by rows.
RAM_BARS: dict[str, tuple[int, int]] = {
    "mlperf_kws_ref_int8": (5_600, 5_200),
    "mlperf_ic_resnet8_int8": (16_500, 13_800),
    "mlperf_vww96_int8": (29_500, 14_000),
    "tinyengine_mcunet_vww_int8": (78_000, 22_000),
    "tinyengine_mcunet_vww_int8" + QUANTISED: (28_000, 22_000),
    "st_mobilenet_v2_0.35_128_imagenet_int8": (56_000, 28_000),
    "st_mobilenet_v1_0.25_224_imagenet_int8": (156_000, 53_000),
    "st_miniresnet_1stack_64x50_int8": (15_500, 15_500),
}
SHARE_BARS = {"tfls_movie_review_avg_word_vec": 0.25}  # of the untiled peak
LARGE_FACTOR = 4.0  # less RAM than untiled
LARGE_OVERHEAD = 0.10  # of MACs
INSTRUCTIONS = 1.15  # of the untiled build's, at equal MACs
SECONDS, LARGE_SECONDS = 10.0, 60.0  # of search

# Figures of others that are no total RAM at the same MACs and so stand apart from `memory.PUBLISHED`.
ELSEWHERE = {
    "mlperf_ic_resnet8_int8": {"Bosch HALE at 1.84x time": 21_104},
}


@dataclass(frozen=True)
class PaperRow:
    """A row of S table 4.1 as printed: kB untiled, with FFMT, with FDT; per cent saved by each; MACs that FFMT adds."""

    name: str
    untiled: float
    ffmt: float
    fdt: float
    saved: tuple[float, float]
    overhead: float
    like: str = ""  # the model measured here that it is


# RAM of TVM, whose intermediate types are wider than int8.
PAPER = (
    PaperRow("AWW", 65.6, 65.6, 53.7, (0.0, 18.1), 0.0, "mlperf_kws_ref_int8"),
    PaperRow("TXT", 18.6, 18.6, 4.4, (0.0, 76.2), 0.0, "tfls_movie_review_avg_word_vec"),
    PaperRow("MW", 17.6, 6.8, 11.3, (61.3, 35.5), 32.5),
    PaperRow("POS", 9_350, 5_110, 8_940, (45.3, 4.4), 45.1),
    PaperRow("SSD", 14_300, 8_660, 12_200, (39.4, 14.6), 0.2),
    PaperRow("CIF", 157, 60, 148, (61.8, 5.7), 12.0),
    PaperRow("RAD", 35, 27, 28, (22.0, 19.6), 0.0),
)

# msf-CNN on MobileNetV2 0.35 at 144 x 144: bytes at so many times the MACs, without input, output and classifier.
MSF_CNN = ((1.0, 194_400), (1.10, 67_996), (1.38, 15_199), (1.68, 8_560))


def published(model: str) -> dict[str, int]:
    """Bytes of RAM that others have printed for this model."""
    name = model.removesuffix(QUANTISED)
    return {**PUBLISHED.get(name, {}), **ELSEWHERE.get(name, {})}


def ram_bar(model: str, untiled: int, is_pulled: bool) -> int | None:
    """The most bytes that a plan at <= 1.05 times the MACs may take; None where nothing is asked for."""
    if model in SHARE_BARS and not is_pulled:
        return int(untiled * SHARE_BARS[model])
    bars = RAM_BARS.get(model)
    return bars[is_pulled] if bars else None
