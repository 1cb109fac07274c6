# SPDX-License-Identifier: GPL-2.0-only
# conserve-real.sh - conserve.sh in real time, on several processors. It needs an idle machine.
. /guest/conserve.sh
