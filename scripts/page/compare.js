// SPDX-License-Identifier: BSD-2-Clause
// What has changed since an older run: in the words of legoprof diff, and function by function.

import { el, section, show } from "./dom.js";
import { percent, seconds } from "./format.js";
import { grid } from "./grid.js";
import { callers, FILTER_KEYS, functions } from "./model.js";
import { set, watch } from "./state.js";

export class Compare {
	constructor(data) {
		this.data = data;
		const [now, old] = data.runs.map((run) => run.meta.path);
		this.section = section("compare", "Compare", `What has changed from ${old} to ${now}?`);
		const { lines, exact } = data.changes;
		this.inside = el("div");
		this.section.append(
			el("p", {}, exact ? "Both runs counted instructions, so each difference is one of the code."
				: "Runs in wall time differ by chance; shares that differ by more are listed."),
			el("ul", { class: "changes" }, ...lines.slice(0, 100).map((text) => el("li", {}, text))),
			lines.length > 100 ? el("p", {}, `${lines.length - 100} more: legoprof diff`) : null,
			this.inside);
		watch(FILTER_KEYS, () => this.redraw());
	}

	redraw() {
		const { tree, runs } = this.data;
		const of = (name) => {
			if (!runs.every((run) => run.graphs[name]?.total))
				return null;
			const views = runs.map((run) => callers(tree, run.graphs[name]));
			const [now, old] = views.map((view) => new Map(functions(tree, view).map(
				(one) => [one.frame, one])));
			return this.table(name, now, old, views.map((view) => view.total[0]));
		};
		show(this.inside, of("cpu"), of("waits"));
	}

	table(name, now, old, [nowTotal, oldTotal]) {
		const frames = [...new Set([...now.keys(), ...old.keys()])];
		const isTime = name === "waits";
		const text = (n) => (isTime ? seconds(n) : n);
		const total = (map, frame) => map.get(frame)?.total ?? 0;
		const self = (map, frame) => map.get(frame)?.self ?? 0;
		const rows = frames.map((frame) => ({ frame, by: self(now, frame) - self(old, frame),
			byTotal: total(now, frame) - total(old, frame) })).filter((row) => row.by || row.byTotal)
			.sort((a, b) => Math.abs(b.by) - Math.abs(a.by) || Math.abs(b.byTotal) - Math.abs(a.byTotal));
		const number = (title) => ({ title, number: true });
		const title = isTime ? "Waits" : "Samples";
		return grid({
			caption: `${title}: ${text(oldTotal)} before, ${text(nowTotal)} now; the largest change first`,
			columns: [{ title: "name" }, ...["change of self", "self before", "self now", "share before",
				"share now", "total before", "total now"].map(number)],
			rows: rows.map(({ frame, by }) => [this.data.tree.names[frame],
				(by > 0 ? "+" : "") + text(by), text(self(old, frame)), text(self(now, frame)),
				percent(self(old, frame), oldTotal), percent(self(now, frame), nowTotal),
				text(total(old, frame)), text(total(now, frame))]),
			top: 10,
			open: (i) => set({ graph: isTime ? "change-waits" : "change", fn: rows[i].frame },
				{ at: "flame" }),
		});
	}
}
