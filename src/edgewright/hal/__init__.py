"""The driver generator (S 6): from C whose bit fields have no place yet to registers, a HAL and the rewritten driver.

`design_flow.analyse` reads a driver, `layout_choice.chosen_design` lays it out and merges, `generate.generate` writes
the C, `export.exports` the documents, `verify.verify` runs it. Nothing is imported here: libclang and the emulator are
extras.
"""
