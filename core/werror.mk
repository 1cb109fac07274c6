# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#
# Warnings are errors with the compilers used for development. Other compilers may warn of more, which is shown only.

developed-with = gcc-12 clang-14
# $(call werror,gcc)
werror = $(if $(filter $(developed-with),$(1)-$(firstword $(subst ., ,$(shell $(1) -dumpversion 2>/dev/null)))),-Werror)
