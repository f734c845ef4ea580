/* SPDX-License-Identifier: ISC */
/* The test is that its dependencies compile: headers_* in BUILD. */
int main(void) { return 0; }
