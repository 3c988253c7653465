// An evaluator in JavaScript that speaks the JSON lines of `recsys conform`:
//   recsys conform -m ndcg -m recall --decision gain --decision discount -- node examples/conformance/evaluator.mjs
// One question per line comes in, one answer per line goes out: {"value": {user: number}} or {"error": why}.
import { createInterface } from "node:readline";

const gains = {
  grade: (grade) => grade,
  binary: () => 1,
  exp2: (grade) => 2 ** grade - 1,
  exp2_next: (grade) => 2 ** (grade + 1) - 1,
};
const discounts = {
  log2: (place) => Math.log2(place + 1),
  log2_max2: (place) => Math.log2(Math.max(place, 2)),
  reciprocal: (place) => place,
};

// The list best first: by score, then by id; an item that stands higher already is a repeat and becomes null.
function places(entries) {
  const items = [...entries].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map((entry) => entry[0]);
  return items.map((item, at) => (items.indexOf(item) < at ? null : item));
}

const metrics = {
  recall: (shown, grades) => shown.filter((item) => grades[item] > 0).length / relevant(grades).length,
  ndcg: (shown, grades, k, { gain = "grade", discount = "log2" }) => {
    const value = typeof gain === "string" ? gains[gain] : (grade) => inTable(new Map(gain), grade);
    const weight = typeof discount === "string" ? (r) => 1 / discounts[discount](r) : (r) => discount[r - 1] ?? 0;
    const dcg = (list) => list.reduce((sum, grade, at) => sum + (grade > 0 ? value(grade) * weight(at + 1) : 0), 0);
    const best = relevant(grades).sort((a, b) => value(b) - value(a)).slice(0, k ?? undefined);
    return dcg(shown.map((item) => grades[item] ?? 0)) / dcg(best);
  },
};

function inTable(gains, grade) {
  if (!gains.has(grade)) throw new Error(`no gain for the grade ${grade}`);
  return gains.get(grade);
}

function relevant(grades) {
  return Object.values(grades).filter((grade) => grade > 0);
}

function answer({ run, truth, k, metric, conventions }) {
  const unknown = Object.keys(conventions).filter((name) => !["gain", "discount"].includes(name));
  if (!(metric in metrics) || unknown.length) return { error: `no ${metric} with ${unknown}` };
  const value = {};
  for (const [user, grades] of Object.entries(truth)) {
    const shown = places(run[user] ?? []).slice(0, k ?? undefined);
    if (relevant(grades).length) value[user] = metrics[metric](shown, grades, k, conventions);
  }
  return { value };
}

function answerOrError(question) {
  try {
    return answer(question);
  } catch (error) {
    return { error: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(answerOrError(JSON.parse(line))));
}
