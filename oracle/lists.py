# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the models that write lists for tests of other languages."""

import sys


def main(program, folder, files):
    """Writes the lists, or with --check says which are not as they would be written.

    Args:
        program: path of the model, as its user types it; each list begins with it.
        folder: of the lists.
        files: names of all lists and their lines.

    Returns:
        The exit code: 1 if a list is not as it would be written.
    """
    stale = 0
    for name, lines in files:
        text = f"# SPDX-License-Identifier: BSD-3-Clause\n# python {program}\n" + "".join(line + "\n" for line in lines)
        path = folder / name
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text() != text:
                print(f"{path} is not what {program} writes")
                stale = 1
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return stale
