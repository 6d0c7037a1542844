// SPDX-License-Identifier: BSD-2-Clause
/*
 * A tree of descriptors in which each node knows which of its slots are full. A bit in a leaf means
 * that its slot is set; a bit in an inner node, that all slots below are. So the search for a free
 * descriptor goes from the root to the first clear bit, however many descriptors are in use.
 */

#include <lego/fd_tree.h>

#include <lego/slab.h>

static unsigned int slot_of(int fd, unsigned int shift)
{
	return fd >> shift & (FD_TREE_SLOTS - 1);
}

/* Returns the first descriptor after fd that belongs to another slot at that shift. */
static int next_slot(int fd, unsigned int shift)
{
	return ((fd >> shift) + 1) << shift;
}

static void set_bit(u64 *word, unsigned int bit, bool on)
{
	*word = (*word & ~BIT(bit)) | (u64)on << bit;
}

void fd_tree_init(struct fd_tree *tree)
{
	tree->root = &tree->first;
}

static void free_node(struct fd_tree *tree, struct fd_node *node, unsigned int shift)
{
	for (unsigned int i = 0; shift && i < FD_TREE_SLOTS; i++) {
		if (node->slots[i])
			free_node(tree, node->slots[i], shift - FD_TREE_BITS);
	}
	if (node != &tree->first)
		kfree(node);
}

void fd_tree_free(struct fd_tree *tree)
{
	free_node(tree, tree->root, tree->shift);
}

static struct fd_node *alloc_node(struct fd_tree *tree)
{
	struct fd_node *node = kzalloc(sizeof(*node));

	if (node)
		tree->nr_nodes++;
	return node;
}

static bool add_level(struct fd_tree *tree)
{
	struct fd_node *root = alloc_node(tree);

	if (!root)
		return false;
	root->slots[0] = tree->root;
	set_bit(&root->full, 0, tree->root->full == ~0ULL);
	tree->root = root;
	tree->shift += FD_TREE_BITS;
	return true;
}

struct fd_node *fd_tree_add_leaf(struct fd_tree *tree, int fd)
{
	struct fd_node *node;

	while (fd >> tree->shift >= FD_TREE_SLOTS) {
		if (!add_level(tree))
			return NULL;
	}
	node = tree->root;
	for (unsigned int shift = tree->shift; shift && node; shift -= FD_TREE_BITS) {
		void **slot = &node->slots[slot_of(fd, shift)];

		if (!*slot)
			*slot = alloc_node(tree);
		node = *slot;
	}
	return node;
}

/* Updates the nodes above the leaf of fd after a change: whether it is full. */
void fd_tree_update_above(struct fd_tree *tree, int fd)
{
	struct fd_node *path[FD_TREE_LEVELS], *node = tree->root;
	unsigned int level = 0;
	bool full;

	for (unsigned int shift = tree->shift; shift; shift -= FD_TREE_BITS) {
		path[level++] = node;
		node = node->slots[slot_of(fd, shift)];
	}
	full = node->full == ~0ULL;
	for (unsigned int shift = FD_TREE_BITS; level--; shift += FD_TREE_BITS) {
		set_bit(&path[level]->full, slot_of(fd, shift), full);
		full = path[level]->full == ~0ULL;
	}
}

bool fd_tree_copy_leaf(struct fd_tree *tree, const struct fd_tree *from, int fd)
{
	struct fd_node *leaf = fd_tree_make_leaf(tree, fd);

	if (!leaf)
		return false;
	*leaf = *fd_tree_leaf(from, fd);
	fd_tree_update_above(tree, fd);
	return true;
}

int fd_tree_search_free(const struct fd_tree *tree, int fd)
{
	const struct fd_node *node = tree->root;
	unsigned int shift = tree->shift;

	while (node && fd >> tree->shift < FD_TREE_SLOTS) {
		u64 clear = ~node->full >> slot_of(fd, shift);
		unsigned int skip = clear ? __builtin_ctzll(clear) : 0;

		if (!clear) { /* start again from the root, after this node */
			fd = next_slot(fd, shift + FD_TREE_BITS);
			node = tree->root;
			shift = tree->shift;
			continue;
		}
		if (skip)
			fd = ((fd >> shift) + (int)skip) << shift;
		if (!shift)
			break;
		node = node->slots[slot_of(fd, shift)];
		shift -= FD_TREE_BITS;
	}
	return fd;
}

int fd_tree_next(const struct fd_tree *tree, int fd)
{
	const struct fd_node *node = tree->root;
	unsigned int shift = tree->shift;

	while (fd >> tree->shift < FD_TREE_SLOTS) {
		if (!shift && node->full >> fd % FD_TREE_SLOTS)
			return fd + __builtin_ctzll(node->full >> fd % FD_TREE_SLOTS);
		if (shift && node->slots[slot_of(fd, shift)]) {
			node = node->slots[slot_of(fd, shift)];
			shift -= FD_TREE_BITS;
			continue;
		}
		fd = next_slot(fd, shift ?: FD_TREE_BITS);
		node = tree->root;
		shift = tree->shift;
	}
	return -1;
}
