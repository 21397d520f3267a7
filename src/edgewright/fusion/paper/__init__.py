"""The paper's automated tiling exploration (S 4.3), in its own words: paths of blocks through a critical buffer."""
