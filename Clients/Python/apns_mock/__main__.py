"""Runs the program: `python -m apns_mock serve`."""

import os
import sys

from .errors import ProgramError
from .server import find_program

if __name__ == "__main__":
    try:
        program = find_program()
    except ProgramError as error:
        sys.exit(str(error))
    os.execv(program, [program, *sys.argv[1:]])
