// SPDX-License-Identifier: BSD-2-Clause
// Computes what a flame graph shows: the weights of a tree's nodes for the rows that are chosen,
// and other trees made of the same rows: callers below, callers or callees of one function.

import { get } from "./state.js";

export const FILTER_KEYS = ["comm", "pid", "tid", "cpu", "call", "idle", "report"];

// Returns a function that says whether a row of a graph is chosen.
export function chooser(tree, graph) {
	const comm = get("comm"), isShown = [true, get("idle") === "1", get("report") === "1"];
	const call = graph.lacks.includes("call") ? "" : get("call");
	const ids = ["pid", "tid", "cpu"].map((key) => [graph[key], get(key)]);
	const tests = ids.filter(([numbers, text]) => text !== "" && !graph.lacks.includes(numbers))
		.map(([numbers, text]) => [numbers, Number(text)]);
	const names = tree.names;
	return (row) => {
		if (!isShown[graph.out[row]])
			return false;
		for (const [ids, id] of tests) {
			if (ids[row] !== id)
				return false;
		}
		if (comm && names[graph.task[row] - 1] !== comm)
			return false;
		return !call || names[graph.call[row] - 1] === call;
	};
}

// Adds the weights of callees to those of their callers, which come before them.
function addUp(view) {
	const { parent, self } = view;
	view.total = self.slice();
	for (let i = view.n - 1; i > 0; i--)
		view.total[parent[i]] += view.total[i];
	return view;
}

// Returns the tree with the weights of the rows that are chosen.
export function callers(tree, graph) {
	const self = new Float64Array(tree.n);
	const has = chooser(tree, graph);
	for (let row = 0; row < graph.node.length; row++) {
		if (has(row))
			self[graph.node[row]] += graph.weight[row];
	}
	return addUp({ n: tree.n, parent: tree.parent, frame: tree.frame, self, isSorted: true });
}

// A tree that grows: nodes of equal frames below the same node are one.
class Growing {
	constructor(nrFrames) {
		this.nodes = new Map();
		this.parent = [0];
		this.frame = [-1];
		this.self = [0];
		this.nrFrames = nrFrames + 1;
	}
	below(node, frame) {
		const key = node * this.nrFrames + frame;
		let found = this.nodes.get(key);
		if (found === undefined) {
			found = this.parent.length;
			this.nodes.set(key, found);
			this.parent.push(node);
			this.frame.push(frame);
			this.self.push(0);
		}
		return found;
	}
	view() {
		return addUp({ n: this.parent.length, parent: Int32Array.from(this.parent),
			frame: Int32Array.from(this.frame), self: Float64Array.from(this.self) });
	}
}

// Returns the tree that begins with the innermost functions; callers are below.
export function reversed(tree, view) {
	const found = new Growing(tree.names.length);
	for (let leaf = 1; leaf < view.n; leaf++) {
		if (!view.self[leaf])
			continue;
		let node = 0;
		for (let i = leaf; i > 0; i = view.parent[i])
			node = found.below(node, view.frame[i]);
		found.self[node] += view.self[leaf];
	}
	return found.view();
}

// Returns two trees of one function: what it calls, and by whom it is called. A stack in which the
// function calls itself counts once: callees from its outermost call, callers from its innermost.
export function sandwich(tree, view, frame) {
	const callees = new Growing(tree.names.length), callersOf = new Growing(tree.names.length);
	const chain = [];
	for (let leaf = 1; leaf < view.n; leaf++) {
		if (!view.self[leaf])
			continue;
		chain.length = 0;
		for (let i = leaf; i > 0; i = view.parent[i])
			chain.push(view.frame[i]);
		const inner = chain.indexOf(frame), outer = chain.lastIndexOf(frame);
		if (inner < 0)
			continue;
		let node = 0;
		for (let i = outer; i >= 0; i--)
			node = callees.below(node, chain[i]);
		callees.self[node] += view.self[leaf];
		node = 0;
		for (let i = inner; i < chain.length; i++)
			node = callersOf.below(node, chain[i]);
		callersOf.self[node] += view.self[leaf];
	}
	return { callees: callees.view(), callers: callersOf.view() };
}

// Returns self and total of each frame of the whole tree, the largest self first. Recursion counts
// once.
export function functions(tree, view) {
	const self = new Float64Array(tree.names.length), total = new Float64Array(tree.names.length);
	for (let i = 1; i < view.n; i++) {
		self[view.frame[i]] += view.self[i];
		if (!tree.nested[i])
			total[view.frame[i]] += view.total[i];
	}
	const found = [];
	for (let frame = 0; frame < total.length; frame++) {
		if (total[frame])
			found.push({ frame, self: self[frame], total: total[frame] });
	}
	return found.sort((a, b) => b.self - a.self || b.total - a.total);
}

// Returns the children of a node. Those of a tree that has grown are found by lists of siblings.
function children(view, node) {
	const { parent, n } = view, found = [];
	if (view.isSorted) {
		let low = 1, high = n;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (parent[middle] < node)
				low = middle + 1;
			else
				high = middle;
		}
		for (let child = low; child < n && parent[child] === node; child++)
			found.push(child);
		return found;
	}
	if (!view.first) {
		view.first = new Int32Array(n);
		view.next = new Int32Array(n);
		for (let i = n - 1; i > 0; i--) {
			view.next[i] = view.first[parent[i]];
			view.first[parent[i]] = i;
		}
	}
	for (let child = view.first[node]; child; child = view.next[child])
		found.push(child);
	return found;
}

// Returns the children of a node, the largest first. They are sorted when somebody looks.
export function sortedChildren(view, node) {
	const size = view.size ?? view.total;
	view.sorted ??= new Map();
	if (!view.sorted.has(node)) {
		view.sorted.set(node, children(view, node).filter((child) => size[child])
			.sort((a, b) => size[b] - size[a] || a - b));
	}
	return view.sorted.get(node);
}

// Returns the share of the weight whose stacks have a frame that matches.
export function matched(view, matches) {
	const has = new Uint8Array(view.n);
	let sum = 0;
	for (let i = 1; i < view.n; i++) {
		has[i] = has[view.parent[i]] | matches[view.frame[i]];
		if (has[i])
			sum += view.self[i];
	}
	return sum;
}

// By frame: whether its name has the text. Upper and lower case are the same.
export function search(tree, text) {
	const found = new Uint8Array(tree.names.length);
	const lower = text.toLowerCase();
	if (lower)
		tree.names.forEach((name, i) => (found[i] = name.toLowerCase().includes(lower) ? 1 : 0));
	return found;
}
