"use strict";

const PAGE = 25; // rows at a time
const { columns, rows, texts, timelines, noun, nouns } = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const state = { words: "", filters: columns.map(() => ""), sorted: null, descending: false, page: 0 };
let found = rows.map((_, number) => number);
let open = null; // the row that the dialog shows

function make(tag, content, attributes = {}) {
  const made = document.createElement(tag);
  made.append(...[content].flat());
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  return made;
}

function text(value) {
  return value === null ? "" : String(value);
}

// What the table shows of a value: a short text for whole events and times, else the value.
function told(number, column) {
  return text(texts[column] ? texts[column][number] : rows[number][column]);
}

// A column's filter: > 5, <= 3, = 7 for numbers, else a part of what is shown or of the value.
function passes(number, column, filter) {
  const value = rows[number][column];
  const comparison = /^\s*(<=|>=|<|>|=)\s*(\S.*)$/.exec(filter);
  if (comparison && typeof value === "number" && !Number.isNaN(Number(comparison[2]))) {
    const bound = Number(comparison[2]);
    return { "<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound, "=": value === bound }[comparison[1]];
  }
  return [text(value), told(number, column)].some((each) => each.toLowerCase().includes(filter.trim().toLowerCase()));
}

function keep(number) {
  const line = columns.flatMap((_, column) => [text(rows[number][column]), told(number, column)]).join("\n").toLowerCase();
  const words = state.words.toLowerCase().split(/\s+/);
  return words.every((word) => line.includes(word)) && columns.every((_, column) => passes(number, column, state.filters[column]));
}

// NULLs are last either way.
function compare(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "number" && typeof other === "number") return sign * (one - other);
  return sign * (text(one) < text(other) ? -1 : text(one) > text(other) ? 1 : 0);
}

function select() {
  found = rows.map((_, number) => number).filter(keep);
  const column = state.sorted;
  const sign = state.descending ? -1 : 1;
  if (column !== null) found.sort((a, b) => compare(rows[a][column], rows[b][column], sign) || a - b);
  state.page = 0;
  show();
}

function show() {
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  element("position").textContent = `${found.length.toLocaleString("en")} ${nouns}, page ${state.page + 1} of ${pages}`;
  element("back").disabled = state.page === 0;
  element("forth").disabled = state.page === pages - 1;
  const shown = found.slice(state.page * PAGE, (state.page + 1) * PAGE);
  document.querySelector("#matches tbody").replaceChildren(...shown.map(row));
}

function look(value, column) {
  if (typeof value === "number") return { class: "number" };
  return { title: text(value), ...(texts[column] ? { class: "told" } : {}) };
}

function row(number) {
  const link = make("a", String(number), { href: `#${noun}=${number}`, title: number < timelines ? "timeline" : "values" });
  const cells = rows[number].map((value, column) => make("td", told(number, column), look(value, column)));
  const made = make("tr", [make("td", link), ...cells], { "data-match": number });
  made.addEventListener("click", (event) => {
    event.preventDefault();
    detail(number);
  });
  return made;
}

function detail(number) {
  if (!(number in rows)) return;
  open = number;
  const picture = element(`timeline-${number}`);
  element("detail-title").textContent = `${noun} ${number}`;
  element("timeline").replaceChildren(picture ? picture.content.cloneNode(true) : make("p", `This page holds ${timelines} timelines, none of this ${noun}.`));
  element("values").replaceChildren(...columns.flatMap(({ name }, column) => [make("dt", name), make("dd", text(rows[number][column]))]));
  if (!element("detail").open) element("detail").showModal();
}

// The row before or behind the open one, among those that pass the filters.
function step(by) {
  const next = found[found.indexOf(open) + by];
  if (next !== undefined) detail(next);
}

function head() {
  const names = columns.map(({ name, type }, column) => {
    const button = make("button", name, { type: "button", title: "sort" });
    button.addEventListener("click", () => {
      state.descending = state.sorted === column && !state.descending;
      state.sorted = column;
      select();
    });
    return make("th", [button, make("small", type)], { scope: "col" });
  });
  const filters = columns.map(({ name }, column) => {
    const input = make("input", [], { type: "search", "aria-label": `filter ${name}`, placeholder: "text, > 5" });
    input.addEventListener("input", () => {
      state.filters[column] = input.value;
      select();
    });
    return make("th", input);
  });
  document.querySelector("#matches thead").replaceChildren(make("tr", [make("th", "#"), ...names]), make("tr", [make("th", []), ...filters]));
}

// What stands behind # in the address: match=3, or row=3, opens that row, filter=words filters.
function follow() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.has("filter")) {
    element("filter").value = state.words = asked.get("filter");
    select();
  }
  if (asked.has(noun)) detail(Number(asked.get(noun)));
}

element("filter").addEventListener("input", (event) => {
  state.words = event.target.value;
  select();
});
element("back").addEventListener("click", () => { state.page -= 1; show(); });
element("forth").addEventListener("click", () => { state.page += 1; show(); });
element("earlier").addEventListener("click", () => step(-1));
element("later").addEventListener("click", () => step(1));
addEventListener("hashchange", follow);
head();
show();
follow();
