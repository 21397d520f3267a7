"""The paper's automated tiling exploration (S 4.3): paths of blocks through a critical buffer."""
