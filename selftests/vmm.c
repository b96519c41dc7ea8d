// SPDX-License-Identifier: GPL-2.0
#include "vmm.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* The guest's memory below the tests': guest physical addresses */
#define LOW_SLOT 31
#define LOW_PAGES 64
#define LOW_PML4 0x1000
#define LOW_PDPT 0x2000
#define LOW_PD 0x3000 /* four of them, 1 GiB each */
#define LOW_GDT 0x7000
#define LOW_IDT 0x7800
#define LOW_CONTROL 0x8000
#define LOW_STACK 0xf000 /* downwards */
#define LOW_CODE 0x10000

#define PTE_TABLE 0x27 /* present, writable, user, accessed */
#define PTE_HUGE 0xe7 /* dirty and of 2 MiB besides */

#define DONE_PORT 0x80
#define EXCEPTION_PORT 0x81
#define EXCEPTIONS 32
#define EXCEPTION_STUB 8 /* bytes of code */
#define MAX_CPUID 256

/*
 * What the guest can do.  Arguments are in RDI, RSI, RDX and RCX, the result is in
 * RAX when the function ends, with an OUT.  Position independent.
 */
asm(".pushsection .rodata\n"
    "vmm_code:\n"

    /* RSI times: the word at RDI becomes RDX; RDI moves by RCX, RDX by one */
    "vmm_code_write:\n"
    "1:	movq	%rdx, (%rdi)\n"
    "	addq	%rcx, %rdi\n"
    "	incq	%rdx\n"
    "	decq	%rsi\n"
    "	jnz	1b\n"
    "	outb	%al, $0x80\n"

    /* RSI pages from RDI on: all words of a page become RDX; RDX moves by one */
    "vmm_code_fill:\n"
    "1:	movl	$512, %ecx\n"
    "	movq	%rdx, %rax\n"
    "	rep stosq\n"
    "	incq	%rdx\n"
    "	decq	%rsi\n"
    "	jnz	1b\n"
    "	outb	%al, $0x80\n"

    /* Returns how many of these pages do not hold that */
    "vmm_code_wrong:\n"
    "	xorl	%r8d, %r8d\n"
    "1:	movl	$512, %ecx\n"
    "	movq	%rdx, %rax\n"
    "	repe scasq\n"
    "	je	2f\n"
    "	incq	%r8\n"
    "	leaq	(%rdi, %rcx, 8), %rdi\n"
    "2:	incq	%rdx\n"
    "	decq	%rsi\n"
    "	jnz	1b\n"
    "	movq	%r8, %rax\n"
    "	outb	%al, $0x80\n"

    /*
     * Over and over, until the control block at RCX says stop: the first word of
     * each of RSI pages from RDI on should be RDX, and becomes RDX + 1.
     * Returns how often it was not.
     */
    "vmm_code_sweep:\n"
    "	xorl	%r8d, %r8d\n"
    "1:	movq	%rdi, %r9\n"
    "	movq	%rsi, %r10\n"
    "	leaq	1(%rdx), %rax\n"
    "2:	cmpq	%rdx, (%r9)\n"
    "	je	3f\n"
    "	incq	%r8\n"
    "3:	movq	%rax, (%r9)\n"
    "	addq	$4096, %r9\n"
    "	decq	%r10\n"
    "	jnz	2b\n"
    "	movq	%rax, %rdx\n"
    "	movq	%rdx, 8(%rcx)\n"
    "	cmpq	$0, (%rcx)\n"
    "	je	1b\n"
    "	movq	%r8, %rax\n"
    "	outb	%al, $0x80\n"

    /* One of 8 bytes for each exception: its number in AL */
    "	.balign	8\n"
    "vmm_code_exception:\n"
    ".set	vector, 0\n"
    ".rept	32\n"
    "	movb	$vector, %al\n"
    "	outb	%al, $0x81\n"
    "	.balign	8\n"
    ".set	vector, vector + 1\n"
    ".endr\n"

    "vmm_code_end:\n"
    ".popsection\n");

extern const char vmm_code[], vmm_code_write[], vmm_code_fill[],
	vmm_code_wrong[], vmm_code_sweep[], vmm_code_exception[],
	vmm_code_end[];

static int kvm_ioctl(int fd, unsigned long request, const char *name, void *arg)
{
	int ret = ioctl(fd, request, arg);

	if (ret < 0)
		ksft_exit_fail_msg("%s: %s\n", name, strerror(errno));
	return ret;
}

#define KVM(fd, request, arg) kvm_ioctl(fd, request, #request, (void *)(arg))

/* The module for this CPU, the parameter that is about its page tables */
static const char *kvm_module(const char **param)
{
	char cpuinfo[2048];
	bool amd;

	read_file("/proc/cpuinfo", cpuinfo, sizeof(cpuinfo));
	amd = strstr(cpuinfo, " svm") != NULL;
	if (!amd && !strstr(cpuinfo, " vmx"))
		ksft_exit_fail_msg("the CPU has neither SVM nor VMX\n");
	*param = amd ? "npt" : "ept";
	return amd ? "amd" : "intel";
}

const char *vmm_mmu_name(bool tdp)
{
	return tdp ? "TDP MMU" : "shadow MMU";
}

/** vmm_load_kvm() - (re)load KVM's module, with TDP or with shadow paging */
void vmm_load_kvm(bool tdp)
{
	const char *param, *name = kvm_module(&param);
	char path[128], value[32];
	int err;

	err = vmm_unload_kvm();
	if (err && err != ENOENT)
		ksft_exit_fail_msg("cannot unload kvm_%s: %s\n", name,
				   strerror(err));
	snprintf(path, sizeof(path), "kvm-%s", name);
	snprintf(value, sizeof(value), "%s=%d", param, tdp);
	err = module_load(path, value);
	if (err)
		ksft_exit_fail_msg("cannot load %s %s: %s\n", path, value,
				   strerror(err));

	/* Refused silently where the CPU lacks it */
	snprintf(path, sizeof(path), "/sys/module/kvm_%s/parameters/%s", name,
		 param);
	read_file(path, value, sizeof(value));
	if (!strchr(tdp ? "Y1" : "N0", *value))
		ksft_exit_fail_msg("%s is %c\n", path, *value);
}

/** vmm_unload_kvm() - returns 0 or an error number */
int vmm_unload_kvm(void)
{
	const char *param;
	char module[32];

	snprintf(module, sizeof(module), "kvm_%s", kvm_module(&param));
	return module_unload(module);
}

/** kvm_stat() - one of KVM's statistics, of all virtual machines together */
uint64_t kvm_stat(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/kvm/%s", name);
	return file_value(path, NULL);
}

static void write_page_tables(char *low)
{
	uint64_t *pml4 = (uint64_t *)(low + LOW_PML4);
	uint64_t *pdpt = (uint64_t *)(low + LOW_PDPT);
	uint64_t *pd = (uint64_t *)(low + LOW_PD);
	size_t i;

	pml4[0] = LOW_PDPT | PTE_TABLE;
	for (i = 0; i < 4; i++)
		pdpt[i] = (LOW_PD + i * PAGE) | PTE_TABLE;
	for (i = 0; i < 4 * 512; i++)
		pd[i] = i * HUGE | PTE_HUGE;
}

/* What an exception needs, for it to be told from a shutdown */
static void write_exceptions(char *low)
{
	uint64_t *gdt = (uint64_t *)(low + LOW_GDT);
	uint64_t *idt = (uint64_t *)(low + LOW_IDT);
	uint64_t stub = LOW_CODE + (vmm_code_exception - vmm_code);
	size_t i;

	gdt[1] = 0x00af9b000000ffff; /* code of 64 bits */
	gdt[2] = 0x00cf93000000ffff; /* data */
	for (i = 0; i < EXCEPTIONS; i++, stub += EXCEPTION_STUB)
		/* An interrupt gate of code segment 8; the stubs are below 4 GiB */
		idt[2 * i] = (stub & 0xffff) | (stub >> 16) << 48 |
			     0x8e0000080000;
}

static void enter_long_mode(int vcpu_fd)
{
	struct kvm_segment data = {
		.limit = ~0U,
		.selector = 0x10,
		.type = 3,
		.present = 1,
		.s = 1,
		.db = 1,
		.g = 1,
	};
	struct kvm_segment code = data;
	struct kvm_sregs sregs;

	code.selector = 8;
	code.type = 11;
	code.db = 0;
	code.l = 1;
	KVM(vcpu_fd, KVM_GET_SREGS, &sregs);
	sregs.cs = code;
	sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = data;
	sregs.gdt.base = LOW_GDT;
	sregs.gdt.limit = 3 * 8 - 1;
	sregs.idt.base = LOW_IDT;
	sregs.idt.limit = EXCEPTIONS * 16 - 1;
	sregs.cr0 = 0x80010033; /* PG, WP, NE, ET, MP, PE */
	sregs.cr3 = LOW_PML4;
	sregs.cr4 = 0x20; /* PAE */
	sregs.efer = 0x500; /* LMA, LME */
	KVM(vcpu_fd, KVM_SET_SREGS, &sregs);
}

static void create_vcpu(struct vmm *vm, unsigned int i,
			struct kvm_cpuid2 *cpuid)
{
	int fd = KVM(vm->fd, KVM_CREATE_VCPU, (long)i);

	vm->vcpu_fd[i] = fd;
	vm->run[i] = mmap(NULL, vm->run_size, PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	if (vm->run[i] == MAP_FAILED)
		ksft_exit_fail_perror("cannot map kvm_run");
	KVM(fd, KVM_SET_CPUID2, cpuid);
	enter_long_mode(fd);
	if (!vm->ring_size)
		return;
	vm->ring[i] = mmap(NULL, vm->ring_size * sizeof(**vm->ring),
			   PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   KVM_DIRTY_LOG_PAGE_OFFSET * PAGE);
	if (vm->ring[i] == MAP_FAILED)
		ksft_exit_fail_perror("cannot map the dirty ring");
}

/**
 * vmm_create() - make a virtual machine with VMM_VCPUS vCPUs
 * @ring_size: entries of its vCPUs' dirty rings, a power of two; 0: bitmaps
 */
void vmm_create(struct vmm *vm, uint32_t ring_size)
{
	int kvm_fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	struct kvm_cpuid2 *cpuid;
	unsigned int i;

	if (kvm_fd < 0)
		ksft_exit_fail_perror("/dev/kvm");
	memset(vm, 0, sizeof(*vm));
	vm->fd = KVM(kvm_fd, KVM_CREATE_VM, 0);
	vm->run_size = KVM(kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	vm->ring_size = ring_size;
	if (ring_size) {
		struct kvm_enable_cap cap = {
			.cap = KVM_CAP_DIRTY_LOG_RING_ACQ_REL,
			.args[0] = ring_size * sizeof(**vm->ring),
		};

		KVM(vm->fd, KVM_ENABLE_CAP, &cap);
	}

	vm->low = mmap(NULL, LOW_PAGES * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (vm->low == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	write_page_tables(vm->low);
	write_exceptions(vm->low);
	memcpy(vm->low + LOW_CODE, vmm_code, vmm_code_end - vmm_code);
	vmm_map(vm, LOW_SLOT, 0, vm->low, LOW_PAGES, 0);

	cpuid = calloc(1, sizeof(*cpuid) + MAX_CPUID * sizeof(*cpuid->entries));
	cpuid->nent = MAX_CPUID;
	KVM(kvm_fd, KVM_GET_SUPPORTED_CPUID, cpuid);
	for (i = 0; i < VMM_VCPUS; i++)
		create_vcpu(vm, i, cpuid);
	free(cpuid);
	close(kvm_fd);
}

/** vmm_destroy() - its memory that vmm_map() was given stays */
void vmm_destroy(struct vmm *vm)
{
	int i;

	for (i = 0; i < VMM_VCPUS; i++) {
		if (vm->ring_size)
			munmap(vm->ring[i], vm->ring_size * sizeof(**vm->ring));
		munmap(vm->run[i], vm->run_size);
		close(vm->vcpu_fd[i]);
	}
	munmap(vm->low, LOW_PAGES * PAGE);
	close(vm->fd);
}

/** vmm_try_map() - as vmm_map(), but returns 0 or an error number */
int vmm_try_map(struct vmm *vm, uint32_t slot, uint64_t gpa, char *mem,
		size_t pages, uint32_t flags)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.flags = flags,
		.guest_phys_addr = gpa,
		.memory_size = pages * PAGE,
		.userspace_addr = (uintptr_t)mem,
	};

	return ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &region) ? errno : 0;
}

/**
 * vmm_map() - show memory to the guest
 * @slot: any number but LOW_SLOT; an existing one is moved, or its flags change
 * @gpa: guest physical address
 * @mem: the memory
 * @pages: its size
 * @flags: KVM_MEM_*
 */
void vmm_map(struct vmm *vm, uint32_t slot, uint64_t gpa, char *mem,
	     size_t pages, uint32_t flags)
{
	int err = vmm_try_map(vm, slot, gpa, mem, pages, flags);

	if (err)
		ksft_exit_fail_msg(
			"cannot set memslot %u, %zu pages, flags %u: %s\n",
			slot, pages, flags, strerror(err));
}

/** vmm_unmap() - remove a slot */
void vmm_unmap(struct vmm *vm, uint32_t slot)
{
	vmm_map(vm, slot, 0, NULL, 0, 0);
}

struct vmm_control *vmm_control(struct vmm *vm, unsigned int vcpu)
{
	return (struct vmm_control *)(vm->low + LOW_CONTROL) + vcpu;
}

static void fail_call(struct vmm *vm, unsigned int vcpu)
{
	struct kvm_run *run = vm->run[vcpu];
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	uint64_t *frame;

	if (run->exit_reason != KVM_EXIT_IO || run->io.port != EXCEPTION_PORT)
		ksft_exit_fail_msg("the guest ended with exit reason %u\n",
				   run->exit_reason);
	KVM(vm->vcpu_fd[vcpu], KVM_GET_REGS, &regs);
	KVM(vm->vcpu_fd[vcpu], KVM_GET_SREGS, &sregs);
	/* The error code, if it has one, then RIP, CS, RFLAGS, RSP */
	frame = (uint64_t *)(vm->low + regs.rsp % LOW_STACK);
	ksft_exit_fail_msg(
		"the guest took exception %u, CR2 %#llx, stack %#lx %#lx %#lx %#lx %#lx\n",
		(uint8_t)regs.rax, sregs.cr2, frame[0], frame[1], frame[2],
		frame[3], frame[4]);
}

/* Runs one of the guest's functions to its end, and returns its result. */
static uint64_t call(struct vmm *vm, unsigned int vcpu, const char *function,
		     uint64_t rdi, uint64_t rsi, uint64_t rdx, uint64_t rcx)
{
	struct kvm_run *run = vm->run[vcpu];
	struct kvm_regs regs = {
		.rip = LOW_CODE + (function - vmm_code),
		.rsp = LOW_STACK,
		.rflags = 2,
		.rdi = rdi,
		.rsi = rsi,
		.rdx = rdx,
		.rcx = rcx,
	};

	KVM(vm->vcpu_fd[vcpu], KVM_SET_REGS, &regs);
	while (ioctl(vm->vcpu_fd[vcpu], KVM_RUN, 0))
		if (errno != EINTR && errno != EAGAIN)
			ksft_exit_fail_perror("KVM_RUN");
	if (run->exit_reason != KVM_EXIT_IO || run->io.port != DONE_PORT)
		fail_call(vm, vcpu);
	KVM(vm->vcpu_fd[vcpu], KVM_GET_REGS, &regs);
	return regs.rax;
}

static uint64_t gpa_of(size_t page)
{
	return VMM_GPA + page * PAGE;
}

/**
 * guest_write() - the guest's rewrite_pages(): one word of a page
 * @first: first page
 * @pages: how many
 * @step: from one to the next
 */
void guest_write(struct vmm *vm, size_t first, size_t pages, size_t step,
		 uint64_t value)
{
	call(vm, 0, vmm_code_write, gpa_of(first), pages, (value << 32) + 1,
	     step * PAGE);
}

void guest_write_at(struct vmm *vm, uint64_t gpa, size_t pages, uint64_t value)
{
	call(vm, 0, vmm_code_write, gpa, pages, (value << 32) + 1, PAGE);
}

/** guest_touch() - any vCPU writes to pages */
void guest_touch(struct vmm *vm, unsigned int vcpu, uint64_t gpa, size_t pages)
{
	call(vm, vcpu, vmm_code_write, gpa, pages, 1, PAGE);
}

/** guest_fill() - the guest's fill_pages(), of pages from @first on */
void guest_fill(struct vmm *vm, size_t first, size_t pages, uint64_t seed)
{
	guest_fill_as(vm, first, pages, seed, first);
}

/** guest_fill_as() - likewise, with what the pages from @as on would hold */
void guest_fill_as(struct vmm *vm, size_t first, size_t pages, uint64_t seed,
		   size_t as)
{
	call(vm, 0, vmm_code_fill, gpa_of(first), pages, (seed << 32) + as + 1,
	     0);
}

/** guest_wrong() - the guest's wrong_pages(), of pages from @first on */
size_t guest_wrong(struct vmm *vm, size_t first, size_t pages, uint64_t seed)
{
	return call(vm, 0, vmm_code_wrong, gpa_of(first), pages,
		    (seed << 32) + first + 1, 0);
}

/**
 * guest_sweep() - count up in all pages, until vmm_control() says stop
 * @value: what the first word of each page is when it starts
 *
 * vmm_control()->value is what it is after the last whole sweep.
 * Returns how often a page did not hold what was left there.
 */
uint64_t guest_sweep(struct vmm *vm, unsigned int vcpu, size_t pages,
		     uint64_t value)
{
	struct vmm_control *control = vmm_control(vm, vcpu);

	return call(vm, vcpu, vmm_code_sweep, VMM_GPA, pages, value,
		    (char *)control - vm->low);
}

/** vmm_dirty_log() - KVM_GET_DIRTY_LOG */
void vmm_dirty_log(struct vmm *vm, uint32_t slot, void *bitmap)
{
	struct kvm_dirty_log log = {
		.slot = slot,
		.dirty_bitmap = bitmap,
	};

	KVM(vm->fd, KVM_GET_DIRTY_LOG, &log);
}

/** vmm_clear_log() - KVM_CLEAR_DIRTY_LOG, of what @bitmap has */
void vmm_clear_log(struct vmm *vm, uint32_t slot, size_t pages, void *bitmap)
{
	struct kvm_clear_dirty_log log = {
		.slot = slot,
		.num_pages = pages,
		.dirty_bitmap = bitmap,
	};

	KVM(vm->fd, KVM_CLEAR_DIRTY_LOG, &log);
}

/** vmm_drain_ring() - the pages in vCPU 0's dirty ring, as a bitmap */
void vmm_drain_ring(struct vmm *vm, uint32_t slot, void *bitmap)
{
	for (;;) {
		uint32_t i = vm->ring_next[0] % vm->ring_size;
		struct kvm_dirty_gfn *gfn = &vm->ring[0][i];
		uint32_t flags = __atomic_load_n(&gfn->flags, __ATOMIC_ACQUIRE);

		if (!(flags & KVM_DIRTY_GFN_F_DIRTY))
			break;
		if (gfn->slot == slot)
			((uint8_t *)bitmap)[gfn->offset / 8] |=
				1 << gfn->offset % 8;
		__atomic_store_n(&gfn->flags, KVM_DIRTY_GFN_F_RESET,
				 __ATOMIC_RELEASE);
		vm->ring_next[0]++;
	}
	KVM(vm->fd, KVM_RESET_DIRTY_RINGS, 0);
}
