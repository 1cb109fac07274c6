# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#
# make prove               every proof, then prove-faults; fails if a property is open that proofs/open.toml does not name
# make prove ONLY=pss      the proofs whose name begins with pss
# make prove-faults        faults that the proofs must reject (proofs/faults.toml)

.PHONY: prove prove-faults provers
provers:
	@command -v frama-c >/dev/null || { echo "frama-c is not installed: ./setup.sh prove"; exit 1; }
	@test -e $(HOME)/.why3.conf || why3 config detect

prove: provers
	python3 proofs/prove.py $(if $(ONLY),--only $(ONLY)) $(if $(RECORD),--record)
	$(if $(ONLY),,python3 proofs/prove.py --faults)

prove-faults: provers
	python3 proofs/prove.py --faults
