// SPDX-License-Identifier: BSD-2-Clause
// Which memory a process has used when: addresses upwards, time to the right. Memory that was never
// mapped takes no room. The stronger a color, the more samples of a region had been used.

import { columnsOf } from "./data.js";
import { color, el, fit, prepare, section } from "./dom.js";
import { bytes, seconds } from "./format.js";
import { get, set, watch } from "./state.js";
import { MEMORY_FILES, tableOf } from "./tables.js";

const SIDE = 130, FOOT = 18; // pixels
const PIXEL = 100; // parts of a pixel, as in profiles/page_memory.py
const CELL_KEYS = ["moment", "top", "tall", "start", "end", "accessed", "written"];

export class Memory {
	constructor(data) {
		const run = data.runs[0];
		this.all = run.memory.map((one) => columnsOf(data, CELL_KEYS, one));
		this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-describedby": "keys",
			"aria-label": "Used memory: left and right choose a moment, up and down a region. " +
			"The tables below have the last one." });
		this.info = el("p", { class: "info", "aria-live": "polite" });
		this.select = el("select", { id: "memory-pid",
			onchange: () => set({ mem: this.select.value }, { at: "memory" }) },
		...this.all.map((one) => el("option", { value: one.pid }, `pid ${one.pid}: ${one.heading}`)));
		const swatches = ["read", "written"].flatMap((name) =>
			[el("span", { class: `swatch ${name}`, "aria-hidden": "true" }), ` ${name} `]);
		const node = section("memory", "Used memory", "Which memory did a process use, and when?");
		node.append(el("div", { class: "controls" }, el("label", {}, "Process ", this.select),
			el("span", { class: "legend" }, ...swatches)), el("div", {}, this.canvas), this.info);
		for (const one of run.tables.filter((table) => MEMORY_FILES.includes(table.file)))
			node.append(tableOf(one, run.meta.tsc_hz || 1e9, 8));
		this.canvas.addEventListener("mousemove", (event) =>
			this.say(this.find(event.offsetX, event.offsetY)));
		this.canvas.addEventListener("mouseleave", () => this.say(-1));
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		watch(["mem", "from", "to"], () => this.redraw());
	}

	redraw() {
		this.one = this.all.find((one) => one.pid === Number(get("mem"))) ?? this.all[0];
		this.select.value = this.one.pid;
		this.cursor = -1;
		this.paint();
		this.say(-1);
	}

	x(ns) {
		const { times } = this.one;
		const share = (ns - times[0]) / (times[times.length - 1] - times[0]);
		return SIDE + Math.min(Math.max(share, 0), 1) * (this.width - SIDE);
	}

	// Returns left, top, width and height of a cell, which belongs to the time before its moment.
	rect(i) {
		const { moment, top, tall, times } = this.one;
		const left = this.x(times[moment[i]]);
		return [left, top[i] / PIXEL, this.x(times[moment[i] + 1]) - left, tall[i] / PIXEL];
	}

	paint() {
		const { one } = this, { context, width } = prepare(this.canvas, one.height + FOOT);
		this.width = width;
		for (const [start, size, top, height] of one.ranges) {
			context.fillStyle = color("panel");
			context.fillRect(SIDE, top, width - SIDE, height);
			context.fillStyle = color("soft");
			if (height >= 10)
				context.fillText(start, 2, top + height - 6);
			if (height >= 24)
				context.fillText(fit(context, size, SIDE - 8), 2, top + 8);
		}
		const colors = ["written", "read", "panel"].map(color);
		let nr = 0;
		for (let i = 0; i < one.moment.length; i++) {
			if (!one.accessed[i])
				continue;
			context.fillStyle = this.colorOf(i, ...colors);
			context.fillRect(...this.rect(i));
			nr++;
		}
		this.canvas.dataset.nodes = nr;
		this.paintAxis(context);
		this.paintChosen(context);
	}

	// The less it is used, the more it is like the background.
	colorOf(i, red, blue, none) {
		const { accessed, written } = this.one;
		const share = Math.round(Math.min(written[i] / accessed[i], 1) * 100);
		const used = `color-mix(in srgb, ${red} ${share}%, ${blue})`;
		return `color-mix(in srgb, ${used} ${accessed[i]}%, ${none})`;
	}

	paintAxis(context) {
		const { times, height } = this.one, from = times[0], to = times[times.length - 1];
		const nr = Math.max(Math.floor((this.width - SIDE) / 130), 1);
		context.fillStyle = color("soft");
		for (let i = 0; i < nr; i++) {
			const ns = Math.round(from + ((to - from) * i) / nr);
			context.fillRect(this.x(ns), height, 1, FOOT);
			context.fillText(`${seconds(ns, 3)} s`, this.x(ns) + 3, height + FOOT / 2);
		}
	}

	// The range that is chosen in the time line, and the cell that is chosen here.
	paintChosen(context) {
		if (get("from")) {
			const [left, right] = ["from", "to"].map((key) => this.x(Number(get(key))));
			context.globalAlpha = 0.18;
			context.fillStyle = color("link");
			context.fillRect(left, 0, Math.max(right - left, 1), this.one.height);
			context.globalAlpha = 1;
		}
		if (this.cursor >= 0) {
			context.strokeStyle = color("text");
			context.strokeRect(...this.rect(this.cursor));
		}
	}

	find(x, y) {
		for (let i = 0; i < this.one.moment.length; i++) {
			const [left, top, width, height] = this.rect(i);
			if (x >= left && x < left + width && y >= top && y < top + height)
				return i;
		}
		return -1;
	}

	say(i) {
		this.info.textContent = i < 0 ? this.one.heading : this.words(i);
	}

	words(i) {
		const { start, end, moment, times, accessed, written } = this.one;
		const hex = (addr) => addr.toString(16);
		return `${hex(start[i])}-${hex(end[i])} (${bytes(end[i] - start[i])}) at ` +
			`${seconds(times[moment[i] + 1], 3)} s: accessed ${accessed[i]} %, written ${written[i]} %`;
	}

	// Chooses the cell of another moment at the same place, or the next one of the same moment.
	key(event) {
		const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
		if (!step[event.key])
			return;
		event.preventDefault();
		const { one } = this, [by, up] = step[event.key];
		if (this.cursor < 0) {
			this.cursor = 0;
		} else if (up) {
			const next = this.cursor + up;
			if (one.moment[next] === one.moment[this.cursor])
				this.cursor = next;
		} else {
			const [, top, , height] = this.rect(this.cursor), at = one.moment[this.cursor] + by;
			const middle = (top + height / 2) * PIXEL;
			const next = one.moment.findIndex((moment, i) => moment === at &&
				middle >= one.top[i] && middle < one.top[i] + one.tall[i]);
			if (next >= 0)
				this.cursor = next;
		}
		this.paint();
		this.say(this.cursor);
	}
}
