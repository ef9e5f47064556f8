import pathlib

# The top of the repository.
ROOT = pathlib.Path(__file__).resolve().parents[3]
