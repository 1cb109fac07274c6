# SPDX-License-Identifier: BSD-3-Clause
"""What directories of results have in common: the names of their files, and the build that made them."""
