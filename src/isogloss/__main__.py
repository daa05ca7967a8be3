"""``python -m isogloss`` is the command line."""

from isogloss.cli import main

main()
