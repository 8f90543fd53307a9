/** A strict reader of Prometheus' text format 0.0.4: what it takes, Prometheus takes. */

export interface ParsedFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: ParsedSample[];
}

interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/;
const VALUE = /^(?:[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/;

/** Reads a whole exposition, and fails with the line that is wrong. */
export function parseExposition(text: string): ParsedFamily[] {
  if (!text.endsWith('\n')) throw new Error('the last line is not ended');
  const lines = text.slice(0, -1).split('\n');
  const families: ParsedFamily[] = [];
  const seen = new Set<string>();
  for (const line of lines) {
    if (line.startsWith('#')) readComment(line, families);
    else readSample(line, families.at(-1), seen);
  }
  for (const family of families) checkFamily(family);
  const names = families.map(({ name }) => name);
  if (new Set(names).size !== names.length) throw new Error('a family comes twice');
  return families;
}

function readComment(line: string, families: ParsedFamily[]): void {
  const [, keyword = '', name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
  if (NAME.exec(name)?.[0] !== name) throw new Error(`not a comment that means something: ${line}`);
  if (keyword === 'HELP') {
    families.push({ name, help: rest, type: '', samples: [] });
    return;
  }
  const family = families.at(-1);
  if (family?.name !== name || family.samples.length > 0) throw new Error(`out of place: ${line}`);
  if (!['counter', 'gauge', 'histogram'].includes(rest)) {
    throw new Error(`an unknown type: ${line}`);
  }
  families[families.length - 1] = { ...family, type: rest };
}

function readSample(line: string, family: ParsedFamily | undefined, seen: Set<string>): void {
  const name = NAME.exec(line)?.[0] ?? '';
  let rest = line.slice(name.length);
  const labels: Record<string, string> = {};
  if (rest.startsWith('{')) {
    rest = rest.slice(1);
    while (!rest.startsWith('}')) {
      const [whole, label = '', value = ''] = LABEL.exec(rest) ?? [];
      if (whole === undefined || label in labels) throw new Error(`bad labels: ${line}`);
      labels[label] = value.replaceAll(/\\(.)/g, (_all, char) => (char === 'n' ? '\n' : char));
      rest = rest.slice(whole.length);
      if (rest.startsWith(',')) rest = rest.slice(1);
      else if (!rest.startsWith('}')) throw new Error(`bad labels: ${line}`);
    }
    rest = rest.slice(1);
  }
  const text = rest.startsWith(' ') ? rest.slice(1) : '';
  if (!VALUE.test(text)) throw new Error(`not a value: ${line}`);
  if (family === undefined || !namesOf(family).includes(name)) {
    throw new Error(`a sample of another family: ${line}`);
  }
  const series = line.slice(0, line.length - text.length);
  if (seen.has(series)) throw new Error(`a series comes twice: ${line}`);
  seen.add(series);
  family.samples.push({ name, labels, value: Number(text.replace('Inf', 'Infinity')) });
}

function namesOf({ name, type }: ParsedFamily): string[] {
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`];
  if (type === 'gauge') return [name];
  return name.endsWith('_total') ? [name] : [];
}

function checkFamily({ name, type, samples }: ParsedFamily): void {
  if (type === '') throw new Error(`${name} has no type`);
  if (type === 'counter' && samples.some(({ value }) => !(value >= 0))) {
    throw new Error(`${name} counts below 0`);
  }
  if (type !== 'histogram') return;
  const keyOf = ({ le: _le, ...labels }: Readonly<Record<string, string>>) =>
    JSON.stringify(labels);
  for (const [key, series] of Map.groupBy(samples, ({ labels }) => keyOf(labels))) {
    const buckets = series.filter((sample) => sample.name.endsWith('_bucket'));
    const bounds = buckets.map(({ labels }) => Number(labels['le']?.replace('Inf', 'Infinity')));
    const counts = buckets.map(({ value }) => value);
    const isRising = (numbers: number[], strictly: boolean) =>
      numbers.every((number, index) => {
        const before = numbers[index - 1] ?? -1;
        return strictly ? number > before : number >= before;
      });
    const count = series.find((sample) => sample.name.endsWith('_count'))?.value;
    const isWhole = bounds.at(-1) === Infinity && counts.at(-1) === count;
    if (!isWhole || !isRising(bounds, true) || !isRising(counts, false)) {
      throw new Error(`the buckets of ${name} ${key} are wrong`);
    }
  }
}
