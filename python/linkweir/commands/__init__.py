# SPDX-License-Identifier: BSD-3-Clause
"""The commands behind `linkweir`, a module each; the rest of the package knows no command line."""
