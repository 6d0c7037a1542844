// SPDX-License-Identifier: BSD-2-Clause
// Reads the data of the page: JSON, and columns of numbers behind it (profiles/page_columns.py).

function bytesOf(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

async function inflate(bytes) {
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Returns a column as an array of numbers. Those of more than four bytes are exact up to 2^53.
export function column(bytes, [offset, count, width, ascending]) {
	const found = width > 4 ? new Float64Array(count) : new Uint32Array(count);
	let scale = 1;
	for (let byte = 0; byte < width; byte++, scale *= 256) {
		const from = offset + byte * count;
		for (let i = 0; i < count; i++)
			found[i] += bytes[from + i] * scale;
	}
	if (!ascending)
		return found;
	const sums = new Float64Array(count);
	for (let i = 0, sum = 0; i < count; i++)
		sums[i] = sum += found[i];
	return sums;
}

// Replaces the places of columns in an object by the columns.
export function columnsOf(data, keys, object) {
	const found = { ...object };
	for (const key of keys)
		found[key] = column(data.bytes, object[key]);
	return found;
}

function readTree(data) {
	const raw = columnsOf(data, ["kinds", "names", "up", "frame"], data.tree);
	const n = raw.frame.length + 1;
	const tree = {
		n,
		parent: new Int32Array(n), // of the root: 0
		frame: new Int32Array(n),
		kinds: raw.kinds,
		names: Array.from(raw.names, (name) => data.strings[name]),
	};
	tree.frame[0] = -1;
	for (let i = 1; i < n; i++) {
		tree.parent[i] = i - raw.up[i - 1];
		tree.frame[i] = raw.frame[i - 1];
	}
	tree.call = callOfNodes(tree, data.kinds.indexOf("call"));
	tree.task = taskOfNodes(tree);
	return tree;
}

// By node: the frame of the system call that it is in, or -1.
function callOfNodes(tree, call) {
	const found = new Int32Array(tree.n).fill(-1);
	for (let i = 1; i < tree.n; i++)
		found[i] = tree.kinds[tree.frame[i]] === call ? tree.frame[i] : found[tree.parent[i]];
	return found;
}

// By node: the frame of the task, which is the innermost one of those at the start (kind 0).
function taskOfNodes(tree) {
	const found = new Int32Array(tree.n).fill(-1);
	for (let i = 1; i < tree.n; i++)
		found[i] = tree.kinds[tree.frame[i]] === 0 ? tree.frame[i] : found[tree.parent[i]];
	return found;
}

const ROW_KEYS = ["node", "pid", "tid", "cpu", "out", "waker", "weight"];

const PATH_KEYS = [...ROW_KEYS, "start", "runs"];

// Reads a graph. What it lacks cannot choose its rows: waits have no threads and no calls.
function graphOf(data, raw) {
	const graph = columnsOf(data, raw.start ? PATH_KEYS : ROW_KEYS, raw);
	graph.lacks = [];
	graph.outTotals = [0, 0, 0]; // by reason: none, idle, a report of the profiler
	graph.weight.forEach((n, row) => (graph.outTotals[graph.out[row]] += n));
	if (!graph.tid.some((tid) => tid))
		graph.lacks.push(graph.tid);
	if (!graph.node.some((node) => data.tree.call[node] >= 0))
		graph.lacks.push("call");
	return graph;
}

export async function load() {
	const text = document.getElementById("data").content.textContent;
	const bytes = await inflate(bytesOf(text));
	const size = new DataView(bytes.buffer).getUint32(0, true);
	const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
	data.bytes = bytes.subarray(4 + size);
	data.tree = readTree(data);
	for (const run of data.runs) {
		for (const [name, graph] of Object.entries(run.graphs))
			run.graphs[name] = graphOf(data, graph);
	}
	return data;
}
