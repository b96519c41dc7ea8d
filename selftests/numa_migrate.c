// SPDX-License-Identifier: GPL-2.0
/*
 * With merge_across_nodes=0, a KSM page that is moved to another NUMA node merges
 * there with what is equal to it, as soon as with dirty_scan=0, although the pages
 * that map it are passed over.
 *
 * Needs two nodes (numa=fake=2).  Seen to fail with: stable_node_placed() returning
 * true.
 */
#include "ksm_dirty_util.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 64UL
#define LIMIT 10

static char *map_on_node(unsigned int node, uint64_t seed)
{
	unsigned long nodes = 1UL << node;
	char *mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	if (syscall(SYS_mbind, mem, PAGES * PAGE, MPOL_BIND, &nodes,
		    8 * sizeof(nodes), 0))
		ksft_exit_fail_perror("mbind");
	advise(mem, PAGES, MADV_NOHUGEPAGE);
	advise(mem, PAGES, MADV_MERGEABLE);
	fill_pages(mem, PAGES, seed);
	return mem;
}

static void move_to_node(char *mem, int node)
{
	void *pages[PAGES];
	int nodes[PAGES], status[PAGES];
	size_t i;

	for (i = 0; i < PAGES; i++) {
		pages[i] = mem + i * PAGE;
		nodes[i] = node;
	}
	if (syscall(SYS_move_pages, 0, PAGES, pages, nodes, status,
		    MPOL_MF_MOVE_ALL))
		ksft_exit_fail_perror("move_pages");
	for (i = 0; i < PAGES; i++)
		if (status[i] != node)
			ksft_exit_fail_msg("page %zu is not on node %d: %d\n",
					   i, node, status[i]);
}

/* How many passes until all merges after the move, LIMIT where that does not happen */
static unsigned int passes_to_merge(bool dirty_scan)
{
	unsigned int passes;
	char *mem[3];
	size_t i;

	ksm_set("dirty_scan", dirty_scan);
	mem[0] = map_on_node(0, 1);
	mem[1] = map_on_node(0, 1);
	mem[2] = map_on_node(1, 1);
	ksm_pass(6);
	if (ksm_get("pages_sharing") != PAGES)
		ksft_exit_fail_msg("%lu pages merged before the move\n",
				   ksm_get("pages_sharing"));
	move_to_node(mem[0], 1);
	for (passes = 0; passes < LIMIT; passes++) {
		if (ksm_get("pages_sharing") == 2 * PAGES)
			break;
		ksm_pass(1);
	}
	ksft_print_msg("dirty_scan=%d: %lu pages merged after %u passes\n",
		       dirty_scan, ksm_get("pages_sharing"), passes);
	for (i = 0; i < 3; i++)
		munmap(mem[i], PAGES * PAGE);
	ksm_pass(1);
	return passes;
}

/* Only while nothing is merged */
static void merge_across_nodes(int value)
{
	ksm_set("run", 2);
	ksm_set("merge_across_nodes", value);
	ksm_set("run", 0);
}

int main(void)
{
	unsigned int stock, dirty;

	ksft_print_header();
	ksft_set_plan(1);
	ksm_setup();
	if (!exists("/sys/devices/system/node/node1"))
		ksft_exit_fail_msg("one NUMA node: boot with numa=fake=2\n");
	ksm_set("dirty_scan_recheck_passes", 0);
	merge_across_nodes(0);
	stock = passes_to_merge(false);
	dirty = passes_to_merge(true);
	check(stock < LIMIT && dirty <= stock,
	      "moved KSM pages merge with those of their new node\n");
	merge_across_nodes(1);
	ksft_finished();
}
