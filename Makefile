# SPDX-License-Identifier: GPL-2.0
# The front door: one target for each job. The kernel reads Kbuild, not this file:
# make -C /lib/modules/$(uname -r)/build M=$PWD modules

VERSION ?= 6.12
BENCH ?=
RUN ?= vm/run --kernel $(VERSION)

.NOTPARALLEL:
.PHONY: help deps kernel kernel-debug kernel-stock module load demo test test-long bench check shell clean distclean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22
	@echo 'Variables: VERSION=$(VERSION) (kernel), KSRC (a Linux tree), KSM_DIRTY_CACHE, BENCH, JOBS'

deps: ## install the Debian packages that are missing
	@vm/deps $(VERSION)

kernel: deps ## build the patched kernel, KVM's modules and ours
	@vm/build $(VERSION)

kernel-debug: deps ## build the patched kernel that checks itself (KASAN, lockdep, ...)
	@vm/build $(VERSION)-debug

kernel-stock: deps ## build the unpatched kernel, to compare with
	@vm/build $(VERSION)-stock

module: kernel ## rebuild the module (seconds, once the kernel is there)

load: ## build the module for the kernel that runs here, and load it (root)
	@ksm_dirty/load

demo: deps ## build what is missing, boot it, measure volatile pages, print the table
	@vm/build --no-kvm $(VERSION)
	@bench/run --demo

test: deps ## run every test; the last line counts them
	@vm/build $(VERSION) $(VERSION)-stock $(VERSION)-debug
	@selftests/run --all

test-long: deps ## run the kernel's own KVM selftests under ksmd (ten minutes)
	@vm/build $(VERSION) $(VERSION)-stock
	@selftests/run kvm_upstream

bench: kernel ## run every benchmark, or one: make bench BENCH=volatile
	@bench/run $(BENCH)

check: kernel ## checkpatch, sparse, shellcheck and clang-format
	@.ci/check $(VERSION)

shell: kernel ## a shell in the virtual machine; 'exit' ends it
	@$(RUN) --interactive -- sh

clean: ## remove build/; the cache stays
	rm -rf build

distclean: clean ## remove build/ and the cache of sources, objects and products
	@vm/build --remove-cache
