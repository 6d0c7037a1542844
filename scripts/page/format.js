// SPDX-License-Identifier: BSD-2-Clause
// Writes numbers as the reports do: exact seconds, shares rounded half up from exact ratios.

export function count(n) {
	return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

// Returns nanoseconds as seconds with up to nine digits. Fewer digits are rounded half up.
export function seconds(ns, digits = 9) {
	const sign = ns < 0 ? "-" : "";
	const unit = 10 ** (9 - digits);
	const whole = Math.floor(Math.abs(ns) / unit + 0.5);
	const scale = 10 ** digits;
	const rest = String(whole % scale).padStart(digits, "0");
	return `${sign}${Math.floor(whole / scale)}${digits ? `.${rest}` : ""}`;
}

// Returns a time with three significant digits and its unit, for a label.
export function time(ns) {
	for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
		if (Math.abs(ns) >= size)
			return `${(ns / size).toPrecision(3)} ${unit}`;
	}
	return `${Math.round(ns)} ns`;
}

export function percent(part, whole) {
	return whole ? `${(Math.floor((10000 * part) / whole + 0.5) / 100).toFixed(2)} %` : "-";
}

export function plural(n, what) {
	return `${count(n)} ${what}${n === 1 ? "" : "s"}`;
}

export function bytes(n) {
	return n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : `${Math.floor(n / 1024)} KiB`;
}

// Returns the weight of a graph's frame in words.
export function weight(graph, n) {
	if (graph.unit === "ns")
		return `${seconds(n, 6)} s`;
	const ns = graph.period ? ` (${time(n * graph.period)})` : "";
	return plural(n, "sample") + ns;
}
