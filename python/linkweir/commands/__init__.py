# SPDX-License-Identifier: BSD-3-Clause
"""What the user types behind `linkweir`: one module a command; the rest of the package knows no command line."""
