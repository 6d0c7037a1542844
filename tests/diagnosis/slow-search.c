// SPDX-License-Identifier: BSD-2-Clause
/* find_customer() looks at all customers so far, for each sale: the time is quadratic. */
#include "diagnosis.h"

#define NR_SALES 10000

struct customer {
	int number;
	int nr_sales;
};

static struct customer customers[NR_SALES];
static int nr_customers;

struct customer NOINLINE *find_customer(int number)
{
	for (int i = 0; i < nr_customers; i++)
		if (customers[i].number == number)
			return &customers[i];
	customers[nr_customers].number = number;
	return &customers[nr_customers++];
}

int main(void)
{
	unsigned int random = 1;

	for (int i = 0; i < NR_SALES; i++) {
		random = random * 1664525 + 1013904223;
		find_customer(random >> 8)->nr_sales++;
	}
	printf("%d customers\n", nr_customers);
	return 0;
}
