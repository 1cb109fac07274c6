# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a run: columns from the native module, files of them, and reading them in parts."""
