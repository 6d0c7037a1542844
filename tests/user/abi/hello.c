// SPDX-License-Identifier: BSD-2-Clause
/*
 * The smallest program: says hello with its arguments. A thread-local variable and a constructor
 * show that libc was started properly; an initialised and a zero variable show that the ELF file
 * was loaded properly.
 */
#include <stdio.h>

static _Thread_local int answer = 42;
static int constructed;
static int data = 17;
static int bss[5000];

__attribute__((constructor)) static void construct(void)
{
	constructed = 1;
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < sizeof(bss) / sizeof(bss[0]); i++) {
		if (bss[i]) {
			puts("FAIL: hello: bss is not zero");
			return 1;
		}
	}
	if (answer != 42 || data != 17 || !constructed) {
		puts("FAIL: hello: the program was not loaded as its file says");
		return 1;
	}
	printf("hello from user space:");
	for (int i = 1; i < argc; i++)
		printf(" [%s]", argv[i]);
	puts("\nPASS: hello");
	return 0;
}
