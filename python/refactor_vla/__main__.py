"""The console command ``refactor-vla``, which is also ``python -m refactor_vla``."""

import signal
import sys

# `refactor_vla` itself is imported first, and sets what must be set before the program starts.
from . import _native


def main() -> None:
    """Run the program in this process."""
    # Python's own handler would only set a flag, and wait for the program to return before it is looked at.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.main(sys.argv[1:], [sys.executable, "-m", __package__]))


if __name__ == "__main__":
    main()
