// SPDX-License-Identifier: BSD-2-Clause
// Intervals that follow each other, and which of them are visible. A pixel that has many of them is
// drawn once, so the number of steps depends on the width of the picture, not on the data.

import { column } from "./data.js";

// Reads the start of the first interval, the gaps before all, and their lengths, names and kinds.
export function readLane(bytes, [first, ...places]) {
	const [gap, ns, name, kind] = places.map((place) => column(bytes, place));
	const start = new Float64Array(gap);
	for (let i = 0, end = first; i < start.length; i++) {
		start[i] += end;
		end = start[i] + ns[i];
	}
	return { start, ns, name, kind };
}

// Returns the first interval from `low` on that ends after a time.
export function firstAfter(lane, time, low = 0) {
	const { start, ns } = lane;
	let step = 1, high = low;
	while (high < start.length && start[high] + ns[high] <= time) {
		low = high + 1;
		high += step;
		step *= 2;
	}
	high = Math.min(high, start.length);
	while (low < high) {
		const middle = (low + high) >> 1;
		if (start[middle] + ns[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Calls put(i, x, width) for what is visible between two times, on so many pixels, and returns how
// often.
export function visible(lane, from, to, width, put) {
	const scale = width / (to - from), pixel = 1 / scale;
	let nr = 0;
	for (let i = firstAfter(lane, from - 1e-9); i < lane.start.length && lane.start[i] < to;) {
		const left = Math.max((lane.start[i] - from) * scale, 0);
		const right = Math.min((lane.start[i] + lane.ns[i] - from) * scale, width);
		put(i, left, Math.max(right - left, 1));
		nr++;
		// What ends on the same pixel is not drawn again.
		i = firstAfter(lane, Math.max(lane.start[i] + lane.ns[i],
			from + (Math.floor(left) + 1) * pixel), i + 1);
	}
	return nr;
}

// Adds the nanoseconds and the counts of intervals between two times to sums by a number.
export function sums(lane, from, to, keyOf, found = []) {
	const { start, ns } = lane;
	for (let i = firstAfter(lane, from); i < start.length && start[i] < to; i++) {
		const inside = Math.min(start[i] + ns[i], to) - Math.max(start[i], from);
		const sum = (found[keyOf(i)] ??= { ns: 0, nr: 0, max: 0 });
		sum.ns += inside;
		sum.nr++;
		sum.max = Math.max(sum.max, inside);
	}
	return found;
}
