"""`python -m edgewright`: the command line where no script was installed for it."""

from .start import run

if __name__ == "__main__":
    run()
