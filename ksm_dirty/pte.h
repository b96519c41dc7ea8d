/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bits of a host page table entry: the one place that knows which of them
 * say "written", which must not be touched, and how to clear them.
 */
#ifndef _KSM_DIRTY_PTE_H
#define _KSM_DIRTY_PTE_H

#include <linux/mm.h>
#include <linux/pgtable.h>

#ifndef CONFIG_X86_64
#error "ksm_dirty knows the dirty bits of x86-64 only"
#endif

/**
 * ksm_dirty_pte_eligible() - may the dirty bit of an entry be looked at?
 * @pte: the entry
 *
 * Not where nothing is mapped; nor where the entry is special: the zero pages
 * of KSM are, and there the dirty bit says that KSM mapped them
 * (is_ksm_zero_pte()).
 *
 * Any context.
 */
static inline bool ksm_dirty_pte_eligible(pte_t pte)
{
	return pte_present(pte) && !pte_special(pte);
}

/**
 * ksm_dirty_pmd_eligible() - likewise, for the entry of a huge page
 * @pmd: the entry
 *
 * Any context.
 */
static inline bool ksm_dirty_pmd_eligible(pmd_t pmd)
{
	return pmd_trans_huge(pmd) && pmd_present(pmd);
}

/**
 * ksm_dirty_pte_shstk() - is a dirty entry that of a shadow stack?
 * @pte: the entry
 *
 * Dirty by the hardware's bit and not writable is what makes it one; the vma
 * should have told already.
 *
 * Any context.
 */
static inline bool ksm_dirty_pte_shstk(pte_t pte)
{
	return (pte_val(pte) & (_PAGE_RW | _PAGE_DIRTY)) == _PAGE_DIRTY;
}

/**
 * ksm_dirty_pmd_shstk() - likewise, for the entry of a huge page
 * @pmd: the entry
 *
 * Any context.
 */
static inline bool ksm_dirty_pmd_shstk(pmd_t pmd)
{
	return (pmd_val(pmd) & (_PAGE_RW | _PAGE_DIRTY)) == _PAGE_DIRTY;
}

/**
 * ksm_dirty_pte_mkclean() - clear the dirty state of an entry
 * @ptep: the entry, its page table locked
 * @pte: its value, as read under that lock
 *
 * Clears what pte_mkclean() does: the hardware's bit and the software's copy of
 * it.  The hardware sets bits at any instant, hence the compare and exchange; all
 * other bits (young, soft-dirty, uffd-wp) stay as they are.
 *
 * Flushes nothing; does not sleep.
 */
static inline void ksm_dirty_pte_mkclean(pte_t *ptep, pte_t pte)
{
	pteval_t val = pte_val(pte);

	while (!try_cmpxchg(&ptep->pte, &val,
			    pte_val(pte_mkclean(native_make_pte(val)))))
		;
}

/**
 * ksm_dirty_pmd_mkclean() - likewise, for the entry of a huge page
 * @pmdp: the entry, its page table locked
 * @pmd: its value, as read under that lock
 */
static inline void ksm_dirty_pmd_mkclean(pmd_t *pmdp, pmd_t pmd)
{
	pmdval_t val = pmd_val(pmd);

	while (!try_cmpxchg(&pmdp->pmd, &val,
			    pmd_val(pmd_mkclean(native_make_pmd(val)))))
		;
}

#endif /* _KSM_DIRTY_PTE_H */
