# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir reproduce`: the figures of the papers, run again."""
