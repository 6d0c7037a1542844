// SPDX-License-Identifier: BSD-2-Clause
// The instructions of a function with their samples, and the lines of source that they are of.

import { el } from "./dom.js";
import { count, percent } from "./format.js";

// Returns an element for the function of a frame, or null if its code is not in the page.
export function codeOf(data, frame) {
	const code = data.runs[0].code?.[frame];
	if (!code)
		return null;
	const most = Math.max(...code.rows.map((row) => row[1]), 1);
	let last = "";
	const rows = code.rows.map(([offset, samples, text, line, source]) => {
		const isNew = line !== last;
		last = line;
		return el("tr", samples === most ? { class: "hottest" } : {},
			el("td", { class: "number" }, samples ? String(samples) : ""),
			el("td", { class: "number" }, samples ? percent(samples, code.samples) : ""),
			el("td", { class: "heat" }, el("span", { style: {
				width: `${(100 * samples) / most}%` } })),
			el("td", {}, line || offset ? `+0x${offset.toString(16)}` : ""),
			el("td", { class: "code" }, text),
			el("td", { class: "code" }, isNew && line ? `${line}  ${source}` : ""));
	});
	const heads = ["samples", "%", "", "at", "instruction", "source"];
	return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Instructions" },
		el("table", { id: "code" },
			el("caption", {}, `Instructions of ${code.file} from ${code.start}: ` +
				`${count(code.samples)} samples of all threads`),
			el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)))),
			el("tbody", {}, ...rows)));
}
