// SPDX-License-Identifier: BSD-2-Clause

// Uses timers, goroutines, garbage collection, files and a child. The output is always the same.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

type node struct {
	left, right *node
	name        string
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{name: strings.Repeat("leaf", 4)}
	}
	return &node{tree(depth - 1), tree(depth - 1), fmt.Sprint("node ", depth)}
}

func (n *node) count() int {
	if n == nil {
		return 0
	}
	return 1 + n.left.count() + n.right.count()
}

func collect() {
	kept := tree(12)
	for i := 0; i < 12; i++ {
		tree(12)
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Println("nodes:", kept.count(), "collected:", stats.NumGC > 1 && stats.Frees > 40000)
}

func timers() {
	var rang []int
	var lock sync.Mutex
	var all sync.WaitGroup
	start := time.Now()
	for _, ms := range []int{90, 30, 60} {
		after := time.Duration(ms) * time.Millisecond
		all.Add(1)
		time.AfterFunc(after, func() {
			lock.Lock()
			if time.Since(start) >= after {
				rang = append(rang, int(after/time.Millisecond))
			}
			lock.Unlock()
			all.Done()
		})
	}
	all.Wait()
	ticker := time.NewTicker(5 * time.Millisecond)
	for i := 0; i < 3; i++ {
		<-ticker.C
	}
	ticker.Stop()
	select {
	case <-make(chan int):
	case <-time.After(10 * time.Millisecond):
		rang = append(rang, 10)
	}
	sort.Ints(rang) // on a busy machine, several timers may be late at the same time
	fmt.Println("timers:", rang)
}

func workers() {
	jobs, results := make(chan int), make(chan string)
	for i := 0; i < 8; i++ {
		go func() {
			for job := range jobs {
				results <- fmt.Sprintf("%x", sha256.Sum256([]byte{byte(job)}))[:8]
			}
		}()
	}
	go func() {
		for i := 0; i < 100; i++ {
			jobs <- i
		}
		close(jobs)
	}()
	var sums []string
	for i := 0; i < 100; i++ {
		sums = append(sums, <-results)
	}
	sort.Strings(sums)
	fmt.Println("workers:", sums[0], sums[99])
}

func files() {
	reader, writer, _ := os.Pipe()
	go func() {
		time.Sleep(10 * time.Millisecond)
		writer.WriteString("through a pipe")
		writer.Close()
	}()
	text := make([]byte, 100)
	n, err := reader.Read(text)
	fmt.Println("pipe:", string(text[:n]), err)
	fmt.Println(os.WriteFile("/tmp/go", text[:n], 0o600))
	out, err := exec.Command("/bin/cat", "/tmp/go").CombinedOutput()
	fmt.Println("child:", string(out), err)
	_, err = os.ReadFile("/no/such")
	fmt.Println(err)
}

func main() {
	timers()
	collect()
	workers()
	files()
	os.Exit(3)
}
