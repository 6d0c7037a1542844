// SPDX-License-Identifier: BSD-2-Clause
// Tables: sorted by a click on a heading, with the first rows shown and a button for more.

import { el, show } from "./dom.js";

const STEP = 200;

function compare(a, b) {
	const x = Number.parseFloat(a), y = Number.parseFloat(b);
	if (Number.isFinite(x) && Number.isFinite(y))
		return y - x;
	return Number.isFinite(x) ? -1 : Number.isFinite(y) ? 1 : String(a ?? "").localeCompare(b ?? "");
}

// options: caption, columns ({title, number, show(value)}), rows, cells(row) if a row is not a list
// of cells, top, and open(i) for a button in the first column of a row.
export function grid(options) {
	const { columns, rows, open } = options, cells = options.cells ?? ((row) => row);
	let order = rows.map((_, i) => i), sorted = -1, nr = options.top ?? 20, reversed = false;
	const body = el("tbody");
	const more = el("button", { type: "button", class: "more", onclick: () => {
		nr += STEP;
		fill();
	} });
	const heads = columns.map((column, i) => el("th", { scope: "col", "aria-sort": "none",
		class: column.number ? "number" : null },
	el("button", { type: "button", onclick: () => sort(i) }, column.title)));

	function sort(i) {
		reversed = sorted === i && !reversed;
		sorted = i;
		const values = rows.map((row) => cells(row)[i]);
		order = rows.map((_, row) => row).sort((a, b) => compare(values[a], values[b]) || a - b);
		if (reversed)
			order.reverse();
		heads.forEach((head, k) => head.setAttribute("aria-sort",
			k !== i ? "none" : columns[i].number !== reversed ? "descending" : "ascending"));
		fill();
	}

	function cell(row, i, value) {
		const column = columns[i];
		const content = value instanceof Node ? value : String(column.show?.(value) ?? value ?? "-");
		const isHead = open && i === 0;
		const inside = isHead
			? el("button", { type: "button", class: "link", onclick: () => open(row) }, content)
			: content;
		return el(isHead ? "th" : "td", { scope: isHead ? "row" : null,
			class: column.number ? "number" : null }, inside);
	}

	function fill() {
		show(body, ...order.slice(0, nr).map((row) =>
			el("tr", {}, ...cells(rows[row]).map((value, i) => cell(row, i, value)))));
		const left = rows.length - nr;
		more.textContent = `${Math.min(left, STEP)} more of ${left}`;
		more.hidden = left <= 0;
	}

	fill();
	return el("div", { class: "grid" }, el("div", { class: "scroll", tabindex: "0", role: "region",
		"aria-label": options.caption },
	el("table", {}, el("caption", {}, options.caption), el("thead", {}, el("tr", {}, ...heads)),
		body)), more);
}
