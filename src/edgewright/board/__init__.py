"""Virtual boards: toolchains, ELF files, machines and their emulators, stack bounds. Independent of CNNs."""
