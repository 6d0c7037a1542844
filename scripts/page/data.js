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

// Decompresses bytes. The stream of a Blob would lead through another process.
async function inflate(bytes) {
	const stream = new DecompressionStream("deflate");
	const writer = stream.writable.getWriter();
	writer.write(bytes);
	writer.close();
	const parts = [], reader = stream.readable.getReader();
	let size = 0;
	for (let one = await reader.read(); !one.done; one = await reader.read()) {
		parts.push(one.value);
		size += one.value.length;
	}
	const found = new Uint8Array(size);
	let at = 0;
	for (const part of parts) {
		found.set(part, at);
		at += part.length;
	}
	return found;
}

// By bytes of a number. The smallest type is best: new memory takes more time than arithmetic.
const TYPES = [Uint8Array, Uint8Array, Uint16Array, Uint32Array, Uint32Array];

// Returns a column as an array of numbers. Those of more than four bytes are exact up to 2^53. One
// of single bytes is a part of the data.
export function column(bytes, [offset, count, width, ascending], Sums = Float64Array) {
	if (width === 1 && !ascending)
		return bytes.subarray(offset, offset + count);
	const found = new (ascending ? Sums : TYPES[width] ?? Float64Array)(count);
	for (let byte = 0; byte < width; byte++) {
		const from = bytes.subarray(offset + byte * count, offset + (byte + 1) * count);
		const scale = 2 ** (8 * byte);
		for (let i = 0; i < count; i++)
			found[i] += from[i] * scale;
	}
	if (ascending) {
		for (let i = 1; i < count; i++)
			found[i] += found[i - 1];
	}
	return found;
}

// Replaces the places of columns in an object by the columns.
export function columnsOf(data, keys, object) {
	const found = { ...object };
	for (const key of keys)
		found[key] = column(data.bytes, object[key]);
	return found;
}

// The first node is the root, which has no frame. A node comes after those of less depth, and after
// those of its depth whose callers come before its own.
function readTree(data) {
	const { bytes, strings, tree: raw } = data;
	const parent = column(bytes, raw.caller, Int32Array); // of the root: 0
	return {
		n: parent.length,
		parent,
		frame: column(bytes, raw.frame),
		nested: column(bytes, raw.nested), // by node: whether it is below one of the same frame
		kinds: column(bytes, raw.kinds),
		names: Array.from(column(bytes, raw.names), (name) => strings[name]),
	};
}

// The innermost frames of the task, of the call and of the task that wakes are numbered from 1.
const ROW_KEYS = ["node", "pid", "tid", "cpu", "out", "weight", "task", "call", "waker"];

const PATH_KEYS = [...ROW_KEYS, "start", "runs"];

// Reads a graph. What it lacks cannot choose its rows: waits have no threads and no calls.
function graphOf(data, raw) {
	const graph = columnsOf(data, raw.start ? PATH_KEYS : ROW_KEYS, raw);
	graph.lacks = [];
	graph.outTotals = [0, 0, 0]; // by reason: none, idle, a report of the profiler
	graph.weight.forEach((n, row) => (graph.outTotals[graph.out[row]] += n));
	if (!graph.tid.some((tid) => tid))
		graph.lacks.push(graph.tid);
	if (!graph.call.some((call) => call))
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
