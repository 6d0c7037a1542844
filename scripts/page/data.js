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

// Adds the bytes of a column from one to another to numbers.
function addBytes(numbers, bytes, [offset, count, width], first, end) {
	for (let byte = first; byte < Math.min(width, end); byte++) {
		const from = bytes.subarray(offset + byte * count, offset + (byte + 1) * count);
		const scale = 2 ** (8 * byte);
		for (let i = 0; i < count; i++)
			numbers[i] += from[i] * scale;
	}
}

// Returns a column as an array of numbers. Those of more than four bytes are exact up to 2^53.
export function column(bytes, place, Sums = Float64Array) {
	const [, count, width, ascending] = place;
	const low = new Uint32Array(count);
	addBytes(low, bytes, place, 0, 4);
	if (width <= 4 && !ascending)
		return low;
	const found = new Sums(low);
	addBytes(found, bytes, place, 4, width);
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

// The first node is the root, which has no frame.
function readTree(data) {
	const { bytes, strings, tree: raw } = data;
	const frame = new Int32Array(column(bytes, raw.frame).buffer);
	frame[0] = -1;
	return {
		n: frame.length,
		frame,
		parent: column(bytes, raw.caller, Int32Array), // of the root: 0
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
