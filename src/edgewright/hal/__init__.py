"""The driver generator (S 6): from C that uses bit fields without places to registers, a HAL and the driver rewritten.

`design_flow.analyse` reads a driver, `choosing.chosen_design` lays it out and merges, `generate.generate` writes the C,
`export.exports` the documents, `verify.verify` runs it. Nothing is imported here: libclang and the emulator are extras.
"""
