/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small virtual machine monitor on the KVM API, for tests.
 *
 * The guest is in long mode, sees its memory at its physical addresses, and has
 * no devices, interrupts or operating system.  A vCPU runs one function at a time, as
 * the host calls it.  Nothing but the memory given to vmm_map() is mergeable.
 *
 * What cannot be done fails the program at once.
 */
#ifndef _VMM_H
#define _VMM_H

#include "ksm_dirty_util.h"

#include <linux/kvm.h>

#define VMM_VCPUS 2

/* Where tests put their memory: guest physical, 2 MiB aligned, below 4 GiB */
#define VMM_GPA (1UL << 30)

/* What a vCPU shares with the host while it runs */
struct vmm_control {
	_Atomic uint64_t stop;
	_Atomic uint64_t value;
};

struct vmm {
	int fd;
	int vcpu_fd[VMM_VCPUS];
	struct kvm_run *run[VMM_VCPUS];
	size_t run_size;
	struct kvm_dirty_gfn *ring[VMM_VCPUS];
	uint32_t ring_next[VMM_VCPUS];
	uint32_t ring_size; /* entries; 0 without */
	char *low; /* page tables, code, control */
};

/* KVM's modules */
const char *vmm_mmu_name(bool tdp);
void vmm_load_kvm(bool tdp);
int vmm_unload_kvm(void);
uint64_t kvm_stat(const char *name);

/* Virtual machines */
void vmm_create(struct vmm *vm, uint32_t ring_size);
void vmm_destroy(struct vmm *vm);
int vmm_try_map(struct vmm *vm, uint32_t slot, uint64_t gpa, char *mem,
		size_t pages, uint32_t flags);
void vmm_map(struct vmm *vm, uint32_t slot, uint64_t gpa, char *mem,
	     size_t pages, uint32_t flags);
void vmm_unmap(struct vmm *vm, uint32_t slot);
struct vmm_control *vmm_control(struct vmm *vm, unsigned int vcpu);

/* What a guest can do; pages count from VMM_GPA on, where no address is given */
void guest_write(struct vmm *vm, size_t first, size_t pages, size_t step,
		 uint64_t value);
void guest_write_at(struct vmm *vm, uint64_t gpa, size_t pages, uint64_t value);
void guest_touch(struct vmm *vm, unsigned int vcpu, uint64_t gpa, size_t pages);
void guest_fill(struct vmm *vm, size_t first, size_t pages, uint64_t seed);
void guest_fill_as(struct vmm *vm, size_t first, size_t pages, uint64_t seed,
		   size_t as);
size_t guest_wrong(struct vmm *vm, size_t first, size_t pages, uint64_t seed);
uint64_t guest_sweep(struct vmm *vm, unsigned int vcpu, size_t pages,
		     uint64_t value);

/* Dirty logging */
void vmm_dirty_log(struct vmm *vm, uint32_t slot, void *bitmap);
void vmm_clear_log(struct vmm *vm, uint32_t slot, size_t pages, void *bitmap);
void vmm_drain_ring(struct vmm *vm, uint32_t slot, void *bitmap);

#endif /* _VMM_H */
