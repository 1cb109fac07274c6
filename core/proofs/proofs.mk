# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#
# make prove               prove-guarantee, every proof with Frama-C, then prove-faults; fails if a property is open that proofs/open.toml does not name
# make prove ONLY=pss      the proofs whose name begins with pss
# make prove-guarantee     the guarantees of pss, drr and rr in Rocq, the C code compared with their models, and the faults of
#                          proofs/guarantee_faults.toml, which must differ, and break an inequality of proofs/broken/
# make prove-outside       only the inequalities, of the core and of its faults; needs no Rocq
# make prove-quick         the same with few lives and without faults; says so if a tool is missing
# make prove-faults        faults that the proofs must reject (proofs/faults.toml); with ONLY=pss, those of the proofs named so

.PHONY: prove prove-faults prove-guarantee prove-outside prove-quick provers
provers:
	@command -v frama-c >/dev/null || { \
		echo "frama-c is not installed: ./setup.sh prove. Debian 13 has no Frama-C: there make -C core prove-guarantee checks"; \
		echo "the guarantees, and run-time errors stay unproved."; exit 1; }
	@test -e $(HOME)/.why3.conf || why3 config detect

prove: $(if $(ONLY),,prove-guarantee) provers
	python3 proofs/prove.py $(if $(ONLY),--only $(ONLY)) $(if $(RECORD),--record)
	$(if $(ONLY),,python3 proofs/prove.py --faults)

prove-faults: provers
	python3 proofs/prove.py --faults $(if $(ONLY),--only $(ONLY))

prove-guarantee:
	python3 proofs/guarantee.py --faults $(if $(RECORD),--record)

prove-outside:
	python3 proofs/guarantee.py --outside

prove-quick:
	python3 proofs/guarantee.py --quick
