// SPDX-License-Identifier: BSD-2-Clause
/* visit_tree() calls itself for each node, and the tree is one branch, 30,000 nodes deep. */
#include "diagnosis.h"

#define NR_NODES  30000
#define NR_ROUNDS 20

struct node {
	struct node *left, *right;
	int number;
};

static struct node nodes[NR_NODES];

/* Returns the sum of the numbers. Each call has a buffer for the text of its node. */
static long NOINLINE visit_tree(struct node *node, int depth)
{
	volatile char text[160];
	long sum;
	int at = 0;

	if (!node)
		return 0;
	for (int number = node->number; number; number /= 10)
		text[at++] = '0' + number % 10;
	text[at] = '\0';
	sum = visit_tree(node->left, depth + 1) + visit_tree(node->right, depth + 1);
	return sum + text[0];
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < NR_NODES; i++)
		nodes[i] = (struct node){ .right = i + 1 < NR_NODES ? &nodes[i + 1] : NULL,
					  .number = i };
	for (int i = 0; i < NR_ROUNDS; i++)
		sum += visit_tree(nodes, 0);
	printf("%ld\n", sum);
	return 0;
}
