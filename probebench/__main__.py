"""``python -m probebench``: the same commands."""

from probebench.cli import main

if __name__ == "__main__":
    main()
