"""Virtual boards: toolchains, ELF files, machines and their emulators, what the stack takes. Knows no CNN."""
