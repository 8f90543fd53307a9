// Counts what objects write, by object and kind of statement. One process is one isolate, so the counts of
// all objects stand in this module.

/** The counts of each object since the process began, by its name. */
const objects = new Map();

/** What a statement does, and to which table. */
const WRITE =
  /\b(insert|replace|update|delete|create)\b(?: or \w+)?(?: (?:into|from|table))?(?: if not exists)? (\w+)/i;

/** Several statements in one text, of which the last alone tells its rows. */
const SEVERAL = /;\s*\S/;

/** A bound text like this tells which of a table's rows is meant: there are few of these. */
const KEY = /^[a-z][a-z_]{1,15}$/;

const utf8 = new TextEncoder();

function bytesOf(value) {
  if (typeof value === 'string') return utf8.encode(value).byteLength;
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? value.byteLength : 0;
}

function kindOf(query, values) {
  if (SEVERAL.test(query)) return `the last of: ${query}`;
  const [, verb, table] = WRITE.exec(query.replaceAll(/\s+/g, ' ')) ?? ['', 'other', query];
  const key = values.find((value) => typeof value === 'string' && KEY.test(value));
  return `${verb.toLowerCase()} ${table}${key === undefined ? '' : ` (${key})`}`;
}

/** Counts of one object. */
class Counts {
  turns = 0;
  kinds = new Map();
  #turnIsOpen = false;

  add(kind, rows, bytes) {
    let sum = this.kinds.get(kind);
    if (sum === undefined) this.kinds.set(kind, (sum = { statements: 0, rows: 0, bytes: 0 }));
    sum.statements += 1;
    sum.rows += rows;
    sum.bytes += bytes;
    if (this.#turnIsOpen) return;
    // The platform commits when the code that runs has come to its end.
    this.#turnIsOpen = true;
    this.turns += 1;
    queueMicrotask(() => (this.#turnIsOpen = false));
  }
}

/** Replaces a method of an object of the platform by one that counts besides. */
function extend(target, name, around) {
  const original = target[name].bind(target);
  Object.defineProperty(target, name, { value: (...args) => around(original, ...args) });
}

/** Counts from now on what is written through the storage of an object. */
export function countWrites(storage, name) {
  const counts = objects.get(name) ?? new Counts();
  objects.set(name, counts);
  extend(storage.sql, 'exec', (exec, query, ...values) => {
    // A statement that writes has run to its end when its cursor is there, also one that returns rows.
    const cursor = exec(query, ...values);
    const rows = cursor.rowsWritten;
    if (rows > 0) {
      const bytes = values.reduce((sum, value) => sum + bytesOf(value), 0);
      counts.add(kindOf(query, values), rows, bytes);
    }
    return cursor;
  });
  // An entry, and an alarm that is set, are a row each on the bill.
  const put = (original, key, value, ...rest) => {
    const entries = typeof key === 'string' ? [[key, value]] : Object.entries(key);
    const bytes = entries.reduce((sum, entry) => sum + bytesOf(JSON.stringify(entry)), 0);
    counts.add('put', entries.length, bytes);
    return original(key, value, ...rest);
  };
  const remove = (original, key, ...rest) => {
    counts.add('delete', [key].flat().length, 0);
    return original(key, ...rest);
  };
  for (const entries of [storage, storage.kv]) {
    extend(entries, 'put', put);
    extend(entries, 'delete', remove);
  }
  extend(storage, 'setAlarm', (setAlarm, ...args) => {
    counts.add('alarm', 1, 0);
    return setAlarm(...args);
  });
}

/** Tells all counts, as JSON has them. */
export function countsSoFar() {
  return Object.fromEntries(
    [...objects].map(([name, { turns, kinds }]) => [
      name,
      { turns, kinds: Object.fromEntries(kinds) },
    ]),
  );
}
