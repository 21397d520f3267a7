"""`python -m edgewright`: the command line where no script was installed for it."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="edgewright")
