# SPDX-License-Identifier: BSD-3-Clause
"""Start of the command ``linkweir``: Ctrl-C while its parts are still being imported ends it quietly, too."""

import sys


def main() -> int:
    """Runs the command; returns its exit code."""
    try:
        from linkweir.commands import cli
    except KeyboardInterrupt:
        print("linkweir: interrupted", file=sys.stderr)
        return 1
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
