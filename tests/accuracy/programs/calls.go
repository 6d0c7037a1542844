// SPDX-License-Identifier: BSD-2-Clause

// Calls in Go, for user_chains.py: recursion, interfaces, closures, goroutines, channels, maps.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type shape interface{ area(depth int) int }

type square struct{ side int }

//go:noinline
func (s square) area(depth int) int {
	if depth == 0 {
		return spin(s.side)
	}
	return s.area(depth-1) + depth
}

//go:noinline
func spin(nr int) (sum int) {
	for i := 0; i < nr*200; i++ {
		sum += i ^ sum
	}
	return
}

func words(nr int) string {
	counts := map[string]int{}
	for i := 0; i < 60; i++ {
		counts[fmt.Sprintf("word %d", i*nr%23)]++
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

func serve(in <-chan int, out chan<- int) {
	for nr := range in {
		out <- spin(nr)
	}
	close(out)
}

func main() {
	in, out := make(chan int), make(chan int)
	go serve(in, out)
	null, _ := os.Create("/dev/null")
	var s shape = square{3}
	for i := 0; i < 80; i++ {
		fmt.Fprintln(null, s.area(i%20), len(words(i)))
		in <- i % 5
		<-out
	}
	close(in)
}
