# SPDX-License-Identifier: BSD-3-Clause
"""The laboratory: scenarios on a real kernel's queues and TCP, in virtual time.

`kernel` builds user-mode Linux, `guest` what runs inside, `host` starts it with a job, `world` makes a job of a
scenario, `collect` makes tables of the job's files, `experiment` puts these together, `choice` picks one.
"""

from linkweir.lab.experiment import Laboratory
from linkweir.lab.fault import LaboratoryError

__all__ = ["Laboratory", "LaboratoryError"]
